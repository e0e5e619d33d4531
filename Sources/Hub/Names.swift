// SPDX-License-Identifier: Apache-2.0
// Two modules have a secret text. Here the name means that of JSON.
import ControlAPI
import HTTP

public typealias SecretText = ControlAPI.SecretText
typealias SecretPEM = HTTP.SecretText
