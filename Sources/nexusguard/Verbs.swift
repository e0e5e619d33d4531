// SPDX-License-Identifier: Apache-2.0

/// Every verb, in the order in which the help lists them.
let verbs =
    tunnelVerbs + agentVerbs + [showVerb, setVerb, backendVerb, benchVerb] + fileVerbs + keyVerbs
    + [hubVerb, logsVerb, keepVerb, completionVerb]
