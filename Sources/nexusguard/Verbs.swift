// SPDX-License-Identifier: Apache-2.0

/// Every verb, in the order in which the help lists them.
let verbs = [showVerb, setVerb] + fileVerbs + keyVerbs + [benchVerb, completionVerb]
