// SPDX-License-Identifier: Apache-2.0
import HostProcess

StandardStream.error.write("nexusguard: no verb given\n")
Host.exit(2)
