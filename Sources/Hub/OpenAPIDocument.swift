// SPDX-License-Identifier: Apache-2.0
// Written by tools/openapi from docs/openapi.json. Long, because it is one text.

/// What `/api/v1/openapi.json` answers: docs/openapi.json without its blanks.
enum OpenAPIDocument {
    static let bytes = Array(text.utf8)
    static let text = #"""
        {"openapi":"3.1.0","info":{"title":"NexusGuard hub","version":"1","summary":"What devices \#
        and operators ask of a hub","description":"The device's half is told in docs/control-api.m\#
        d. Fields that are not listed are ignored; one that may be absent may be null.","license":\#
        {"name":"Apache-2.0","identifier":"Apache-2.0"}},"servers":[{"url":"/"}],"tags":[{"name":"\#
        device"},{"name":"session"},{"name":"tokens"},{"name":"devices"},{"name":"forwards"},{"nam\#
        e":"hub"},{"name":"operators"}],"paths":{"/api/v1/openapi.json":{"get":{"operationId":"doc\#
        ument","tags":["device"],"summary":"This document","responses":{"200":{"description":"Open\#
        API 3.1","content":{"application/json":{"schema":{"type":"object"}}}},"default":{"$ref":"#\#
        /components/responses/Problem"}},"security":[]}},"/api/v1/provision":{"post":{"operationId\#
        ":"provision","tags":["device"],"summary":"Enrol a device","requestBody":{"required":true,\#
        "content":{"application/json":{"schema":{"$ref":"#/components/schemas/ProvisionRequest"}}}\#
        },"responses":{"200":{"description":"Enrolled; the same token and hwid may ask again until\#
         the first heartbeat","content":{"application/json":{"schema":{"$ref":"#/components/schema\#
        s/ProvisionAnswer"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"descript\#
        ion":"token_expired","content":{"application/problem+json":{"schema":{"$ref":"#/components\#
        /schemas/Problem"}}}},"409":{"$ref":"#/components/responses/Conflict"},"415":{"$ref":"#/co\#
        mponents/responses/UnsupportedMediaType"},"429":{"$ref":"#/components/responses/TooManyReq\#
        uests"},"default":{"$ref":"#/components/responses/Problem"},"403":{"description":"token_re\#
        fused: the token is unknown or used up","content":{"application/problem+json":{"schema":{"\#
        $ref":"#/components/schemas/Problem"}}}},"426":{"$ref":"#/components/responses/UpgradeRequ\#
        ired"}},"security":[]}},"/api/v1/heartbeat":{"post":{"operationId":"heartbeat","tags":["de\#
        vice"],"summary":"Report, and hear what changed","requestBody":{"required":true,"content":\#
        {"application/json":{"schema":{"$ref":"#/components/schemas/HeartbeatRequest"}}}},"respons\#
        es":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/compon\#
        ents/schemas/HeartbeatAnswer"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401"\#
        :{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotF\#
        ound"},"409":{"$ref":"#/components/responses/Conflict"},"410":{"$ref":"#/components/respon\#
        ses/Revoked"},"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"429":{"$ref":"\#
        #/components/responses/TooManyRequests"},"default":{"$ref":"#/components/responses/Problem\#
        "},"426":{"$ref":"#/components/responses/UpgradeRequired"}},"security":[{"device":[]}]}},"\#
        /api/v1/device/rotate":{"post":{"operationId":"rotate","tags":["device"],"summary":"Offer \#
        the device's next key","requestBody":{"required":true,"content":{"application/json":{"sche\#
        ma":{"$ref":"#/components/schemas/RotateRequest"}}}},"responses":{"200":{"description":"Do\#
        ne","content":{"application/json":{"schema":{"$ref":"#/components/schemas/EmptyAnswer"}}}}\#
        ,"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/responses/\#
        Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/component\#
        s/responses/Conflict"},"410":{"$ref":"#/components/responses/Revoked"},"415":{"$ref":"#/co\#
        mponents/responses/UnsupportedMediaType"},"429":{"$ref":"#/components/responses/TooManyReq\#
        uests"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"device":[]}]}},\#
        "/api/v1/device/token":{"post":{"operationId":"renewToken","tags":["device"],"summary":"Re\#
        new the device's token","responses":{"200":{"description":"Done","content":{"application/j\#
        son":{"schema":{"$ref":"#/components/schemas/TokenAnswer"}}}},"401":{"$ref":"#/components/\#
        responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"410":{"$ref":"#\#
        /components/responses/Revoked"},"429":{"$ref":"#/components/responses/TooManyRequests"},"d\#
        efault":{"$ref":"#/components/responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/d\#
        evice/events":{"get":{"operationId":"deviceEvents","tags":["device"],"summary":"Be woken: \#
        config, forwards, command","responses":{"200":{"description":"Server-sent events","content\#
        ":{"text/event-stream":{"schema":{"type":"string"}}}},"401":{"$ref":"#/components/response\#
        s/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"410":{"$ref":"#/compone\#
        nts/responses/Revoked"},"429":{"$ref":"#/components/responses/TooManyRequests"},"default":\#
        {"$ref":"#/components/responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/unenroll"\#
        :{"post":{"operationId":"unenroll","tags":["device"],"summary":"Leave","responses":{"204":\#
        {"description":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":\#
        "#/components/responses/NotFound"},"410":{"$ref":"#/components/responses/Revoked"},"429":{\#
        "$ref":"#/components/responses/TooManyRequests"},"default":{"$ref":"#/components/responses\#
        /Problem"}},"security":[{"device":[]}]}},"/api/v1/admin/login":{"post":{"operationId":"log\#
        In","tags":["session"],"summary":"Log in; twelve hours","requestBody":{"required":true,"co\#
        ntent":{"application/json":{"schema":{"$ref":"#/components/schemas/LoginRequest"}}}},"resp\#
        onses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/com\#
        ponents/schemas/LoginAnswer"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":\#
        {"$ref":"#/components/responses/Unauthorized"},"415":{"$ref":"#/components/responses/Unsup\#
        portedMediaType"},"429":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$ref\#
        ":"#/components/responses/Problem"}},"security":[]}},"/api/v1/admin/logout":{"post":{"oper\#
        ationId":"logOut","tags":["session"],"summary":"Log out","responses":{"204":{"description"\#
        :"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/compone\#
        nts/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/tokens":{"get":{"op\#
        erationId":"listTokens","tags":["tokens"],"summary":"Enrolment tokens","parameters":[{"nam\#
        e":"offset","in":"query","schema":{"type":"integer","minimum":0,"maximum":1000000,"default\#
        ":0}},{"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"d\#
        efault":100}}],"responses":{"200":{"description":"Done","content":{"application/json":{"sc\#
        hema":{"$ref":"#/components/schemas/TokenPage"}}}},"400":{"$ref":"#/components/responses/B\#
        adRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/comp\#
        onents/responses/Problem"}},"security":[{"operator":[]}]},"post":{"operationId":"makeToken\#
        ","tags":["tokens"],"summary":"Make an enrolment token","requestBody":{"required":true,"co\#
        ntent":{"application/json":{"schema":{"$ref":"#/components/schemas/TokenRequest"}}}},"resp\#
        onses":{"201":{"description":"Made; the only answer that shows it","content":{"application\#
        /json":{"schema":{"$ref":"#/components/schemas/TokenView"}}}},"400":{"$ref":"#/components/\#
        responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":\#
        "#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"415":\#
        {"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/res\#
        ponses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/tokens/{id}":{"delete":{"o\#
        perationId":"revokeToken","tags":["tokens"],"summary":"Revoke an enrolment token","paramet\#
        ers":[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}],\#
        "responses":{"204":{"description":"Done"},"401":{"$ref":"#/components/responses/Unauthoriz\#
        ed"},"404":{"$ref":"#/components/responses/NotFound"},"default":{"$ref":"#/components/resp\#
        onses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/devices":{"get":{"operation\#
        Id":"listDevices","tags":["devices"],"summary":"Devices by name","parameters":[{"name":"se\#
        arch","in":"query","schema":{"type":"string"}},{"name":"control","in":"query","schema":{"t\#
        ype":"string","enum":["pending","reporting","silent","revoked"]}},{"name":"offset","in":"q\#
        uery","schema":{"type":"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limi\#
        t","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":50}}],"resp\#
        onses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/com\#
        ponents/schemas/DevicePage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{\#
        "$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Pr\#
        oblem"}},"security":[{"operator":[]}]}},"/api/v1/admin/devices/{id}":{"get":{"operationId"\#
        :"showDevice","tags":["devices"],"summary":"One device","parameters":[{"name":"id","in":"p\#
        ath","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"200":{"descr\#
        iption":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Devic\#
        eView"}}}},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/component\#
        s/responses/NotFound"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"\#
        operator":[]}]},"patch":{"operationId":"patchDevice","tags":["devices"],"summary":"Change \#
        a device","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"\#
        ,"minLength":1}}],"requestBody":{"required":true,"content":{"application/json":{"schema":{\#
        "$ref":"#/components/schemas/DevicePatchRequest"}}}},"responses":{"200":{"description":"Do\#
        ne","content":{"application/json":{"schema":{"$ref":"#/components/schemas/DeviceView"}}}},\#
        "400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/responses/U\#
        nauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components\#
        /responses/Conflict"},"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"defaul\#
        t":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]},"delete":{"ope\#
        rationId":"forgetDevice","tags":["devices"],"summary":"Forget a revoked device","parameter\#
        s":[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}],"r\#
        esponses":{"204":{"description":"Done"},"401":{"$ref":"#/components/responses/Unauthorized\#
        "},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/\#
        Conflict"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]\#
        }]}},"/api/v1/admin/devices/{id}/config":{"get":{"operationId":"showDeviceConfig","tags":[\#
        "devices"],"summary":"The configuration it should have, without its private key","paramete\#
        rs":[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}],"\#
        responses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#\#
        /components/schemas/WireGuardConfig"}}}},"401":{"$ref":"#/components/responses/Unauthorize\#
        d"},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses\#
        /Conflict"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[\#
        ]}]}},"/api/v1/admin/devices/{id}/revoke":{"post":{"operationId":"revokeDevice","tags":["d\#
        evices"],"summary":"Revoke a device","parameters":[{"name":"id","in":"path","required":tru\#
        e,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"description":"Done"},"40\#
        1":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/No\#
        tFound"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]\#
        }},"/api/v1/admin/devices/{id}/reset":{"post":{"operationId":"resetDevice","tags":["device\#
        s"],"summary":"New handshake with the hub, at its next heartbeat","parameters":[{"name":"i\#
        d","in":"path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"20\#
        4":{"description":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$re\#
        f":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"de\#
        fault":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/\#
        admin/devices/{id}/reprovision":{"post":{"operationId":"reprovisionDevice","tags":["device\#
        s"],"summary":"Enrol again, with a fresh token, at its next heartbeat","parameters":[{"nam\#
        e":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}],"responses"\#
        :{"204":{"description":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":\#
        {"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"\#
        },"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/ap\#
        i/v1/admin/devices/{id}/rotate":{"post":{"operationId":"rotateDevice","tags":["devices"],"\#
        summary":"Make a new key, at its next heartbeat","parameters":[{"name":"id","in":"path","r\#
        equired":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"description"\#
        :"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/\#
        responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"default":{"$ref":"#\#
        /components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/forwards":{\#
        "get":{"operationId":"listForwards","tags":["forwards"],"summary":"Port forwards","paramet\#
        ers":[{"name":"deviceId","in":"query","schema":{"type":"string"}},{"name":"offset","in":"q\#
        uery","schema":{"type":"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limi\#
        t","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":100}}],"res\#
        ponses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/co\#
        mponents/schemas/ForwardPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401"\#
        :{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/\#
        Problem"}},"security":[{"operator":[]}]},"post":{"operationId":"addForward","tags":["forwa\#
        rds"],"summary":"Add a port forward","requestBody":{"required":true,"content":{"applicatio\#
        n/json":{"schema":{"$ref":"#/components/schemas/ForwardRequest"}}}},"responses":{"201":{"d\#
        escription":"Added","content":{"application/json":{"schema":{"$ref":"#/components/schemas/\#
        ForwardView"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/compo\#
        nents/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$r\#
        ef":"#/components/responses/Conflict"},"415":{"$ref":"#/components/responses/UnsupportedMe\#
        diaType"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}\#
        ]}},"/api/v1/admin/forwards/{id}":{"get":{"operationId":"showForward","tags":["forwards"],\#
        "summary":"One port forward","parameters":[{"name":"id","in":"path","required":true,"schem\#
        a":{"type":"string","minLength":1}}],"responses":{"200":{"description":"Done","content":{"\#
        application/json":{"schema":{"$ref":"#/components/schemas/ForwardView"}}}},"401":{"$ref":"\#
        #/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"de\#
        fault":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]},"put":{"op\#
        erationId":"replaceForward","tags":["forwards"],"summary":"Replace a port forward","parame\#
        ters":[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}]\#
        ,"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/compone\#
        nts/schemas/ForwardRequest"}}}},"responses":{"200":{"description":"Done","content":{"appli\#
        cation/json":{"schema":{"$ref":"#/components/schemas/ForwardView"}}}},"400":{"$ref":"#/com\#
        ponents/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":\#
        {"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"\#
        },"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/compon\#
        ents/responses/Problem"}},"security":[{"operator":[]}]},"delete":{"operationId":"removeFor\#
        ward","tags":["forwards"],"summary":"Remove a port forward","parameters":[{"name":"id","in\#
        ":"path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"d\#
        escription":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/\#
        components/responses/NotFound"},"default":{"$ref":"#/components/responses/Problem"}},"secu\#
        rity":[{"operator":[]}]}},"/api/v1/admin/status":{"get":{"operationId":"showStatus","tags"\#
        :["hub"],"summary":"The hub itself","responses":{"200":{"description":"Done","content":{"a\#
        pplication/json":{"schema":{"$ref":"#/components/schemas/HubView"}}}},"401":{"$ref":"#/com\#
        ponents/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"sec\#
        urity":[{"operator":[]}]}},"/api/v1/admin/counts":{"get":{"operationId":"showCounts","tags\#
        ":["hub"],"summary":"How many of what","responses":{"200":{"description":"Done","content":\#
        {"application/json":{"schema":{"$ref":"#/components/schemas/CountsView"}}}},"401":{"$ref":\#
        "#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}\#
        },"security":[{"operator":[]}]}},"/api/v1/admin/settings":{"get":{"operationId":"showSetti\#
        ngs","tags":["hub"],"summary":"Settings","responses":{"200":{"description":"Done","content\#
        ":{"application/json":{"schema":{"$ref":"#/components/schemas/Settings"}}}},"401":{"$ref":\#
        "#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}\#
        },"security":[{"operator":[]}]},"patch":{"operationId":"changeSettings","tags":["hub"],"su\#
        mmary":"Change settings; those that are absent stay","requestBody":{"required":true,"conte\#
        nt":{"application/json":{"schema":{"$ref":"#/components/schemas/Settings"}}}},"responses":\#
        {"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/components\#
        /schemas/Settings"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#\#
        /components/responses/Unauthorized"},"409":{"$ref":"#/components/responses/Conflict"},"415\#
        ":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/r\#
        esponses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/alarms":{"get":{"operati\#
        onId":"listAlarms","tags":["hub"],"summary":"Alarms, newest first","parameters":[{"name":"\#
        state","in":"query","schema":{"type":"string","enum":["open","all"]}},{"name":"offset","in\#
        ":"query","schema":{"type":"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"\#
        limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":100}}],\#
        "responses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"\#
        #/components/schemas/AlarmPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"40\#
        1":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/response\#
        s/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/alarms/{id}/acknowledge":{"post\#
        ":{"operationId":"acknowledgeAlarm","tags":["hub"],"summary":"Acknowledge an alarm","param\#
        eters":[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}\#
        ],"responses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref"\#
        :"#/components/schemas/AlarmView"}}}},"401":{"$ref":"#/components/responses/Unauthorized"}\#
        ,"404":{"$ref":"#/components/responses/NotFound"},"default":{"$ref":"#/components/response\#
        s/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/logs":{"get":{"operationId":"li\#
        stLogs","tags":["hub"],"summary":"The log, newest first","parameters":[{"name":"limit","in\#
        ":"query","schema":{"type":"integer","minimum":1,"maximum":1000,"default":100}},{"name":"b\#
        efore","in":"query","schema":{"type":"integer","minimum":1,"maximum":9007199254740991,"des\#
        cription":"only records with smaller numbers"}},{"name":"deviceId","in":"query","schema":{\#
        "type":"string"}}],"responses":{"200":{"description":"Done","content":{"application/json":\#
        {"schema":{"$ref":"#/components/schemas/LogPage"}}}},"400":{"$ref":"#/components/responses\#
        /BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/co\#
        mponents/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/events":{"get"\#
        :{"operationId":"operatorEvents","tags":["hub"],"summary":"Hear what changes","responses":\#
        {"200":{"description":"Server-sent events","content":{"text/event-stream":{"schema":{"type\#
        ":"string"}}}},"401":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/c\#
        omponents/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/operators":{"\#
        get":{"operationId":"listOperators","tags":["operators"],"summary":"Who may log in","param\#
        eters":[{"name":"offset","in":"query","schema":{"type":"integer","minimum":0,"maximum":100\#
        0000,"default":0}},{"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"ma\#
        ximum":500,"default":100}}],"responses":{"200":{"description":"Done","content":{"applicati\#
        on/json":{"schema":{"$ref":"#/components/schemas/OperatorPage"}}}},"400":{"$ref":"#/compon\#
        ents/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"default"\#
        :{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]},"post":{"operati\#
        onId":"setOperator","tags":["operators"],"summary":"Add an operator, or set another passwo\#
        rd","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/comp\#
        onents/schemas/OperatorRequest"}}}},"responses":{"201":{"description":"Set","content":{"ap\#
        plication/json":{"schema":{"$ref":"#/components/schemas/OperatorView"}}}},"400":{"$ref":"#\#
        /components/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"4\#
        15":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/components\#
        /responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/operators/{name}":{"de\#
        lete":{"operationId":"removeOperator","tags":["operators"],"summary":"Remove an operator; \#
        its sessions end","parameters":[{"name":"name","in":"path","required":true,"schema":{"type\#
        ":"string","minLength":1}}],"responses":{"204":{"description":"Done"},"401":{"$ref":"#/com\#
        ponents/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"default\#
        ":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin\#
        /backup":{"post":{"operationId":"backUp","tags":["hub"],"summary":"Everything, sealed unde\#
        r a passphrase; on the hub's machine only","requestBody":{"required":true,"content":{"appl\#
        ication/json":{"schema":{"$ref":"#/components/schemas/BackupRequest"}}}},"responses":{"200\#
        ":{"description":"The backup","content":{"application/octet-stream":{"schema":{}}}},"400":\#
        {"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unautho\#
        rized"},"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/\#
        components/responses/Problem"},"403":{"description":"forbidden: not over the network","con\#
        tent":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}}},"s\#
        ecurity":[{"operator":[]}]}}},"components":{"securitySchemes":{"device":{"type":"http","sc\#
        heme":"bearer","description":"a deviceToken"},"operator":{"type":"http","scheme":"bearer",\#
        "description":"a session of login; the unix socket needs none"}},"responses":{"BadRequest"\#
        :{"description":"bad_request: the request is malformed","content":{"application/problem+js\#
        on":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"Unauthorized":{"description":"au\#
        th_expired: the credential is not valid","content":{"application/problem+json":{"schema":{\#
        "$ref":"#/components/schemas/Problem"}}},"headers":{"WWW-Authenticate":{"schema":{"type":"\#
        string"}}}},"NotFound":{"description":"not_found, or unknown_device on a device's call","c\#
        ontent":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"\#
        Conflict":{"description":"conflict: it conflicts with what is there; duplicate_identity on\#
         a device's call","content":{"application/problem+json":{"schema":{"$ref":"#/components/sc\#
        hemas/Problem"}}}},"Revoked":{"description":"revoked: the operator removed this device","c\#
        ontent":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"\#
        UnsupportedMediaType":{"description":"unsupported_media_type: the body is sent as applicat\#
        ion/json","content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Pr\#
        oblem"}}}},"TooManyRequests":{"description":"too_many_requests","content":{"application/pr\#
        oblem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}},"headers":{"Retry-After":{\#
        "schema":{"type":"integer","minimum":0}}}},"Problem":{"description":"any other: status and\#
         code belong together","content":{"application/problem+json":{"schema":{"$ref":"#/componen\#
        ts/schemas/Problem"}}}},"UpgradeRequired":{"description":"upgrade_required: the agent is t\#
        oo old","content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Prob\#
        lem"}}}}},"schemas":{"Problem":{"type":"object","properties":{"type":{"type":"string"},"ti\#
        tle":{"type":"string"},"status":{"type":"integer","minimum":400,"maximum":599},"code":{"ty\#
        pe":"string","enum":["bad_request","public_key_required","token_expired","auth_expired","t\#
        oken_refused","forbidden","unknown_device","not_found","method_not_allowed","duplicate_ide\#
        ntity","conflict","revoked","too_large","unsupported_media_type","upgrade_required","too_m\#
        any_requests","internal_error","unavailable"]},"detail":{"type":["string","null"]},"device\#
        Id":{"type":["string","null"],"description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$\#
        "}},"description":"Problem details (RFC 9457). `code` decides, never the status alone.","r\#
        equired":["type","title","status","code"]},"EmptyAnswer":{"type":"object","properties":{},\#
        "description":"Nothing but that it was done."},"ProvisionRequest":{"type":"object","proper\#
        ties":{"token":{"type":"string","format":"password"},"hwid":{"type":"string","pattern":"^[\#
        0-9a-f]{32}$","description":"machine id made for this application"},"publicKey":{"type":["\#
        string","null"],"description":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[\#
        AEIMQUYcgkosw048]=$"},"name":{"type":["string","null"],"maxLength":64,"description":"text \#
        of one line"},"platform":{"type":["string","null"],"maxLength":64,"description":"text of o\#
        ne line"},"agentVersion":{"type":["string","null"],"maxLength":64,"description":"text of o\#
        ne line"},"protocolVersion":{"type":["integer","null"],"minimum":0,"maximum":1000000,"desc\#
        ription":"what the agent speaks of this interface; absent: 1"}},"description":"A device as\#
        ks to be enrolled.","required":["token","hwid"]},"ProvisionAnswer":{"type":"object","prope\#
        rties":{"deviceId":{"type":"string","format":"uuid"},"deviceToken":{"type":"string","forma\#
        t":"password","pattern":"^[A-Za-z0-9_-]{43}$","description":"256 random bits in base64url"\#
        },"salt":{"type":"string","pattern":"^[0-9a-f]{32}$"},"encrypted":{"type":"string","conten\#
        tEncoding":"base64","description":"a WireGuardConfig in an envelope: docs/control-api.md"}\#
        ,"heartbeatSeconds":{"type":["integer","null"],"minimum":5,"maximum":3600,"description":"s\#
        econds between heartbeats"}},"description":"What an enrolled device gets.","required":["de\#
        viceId","deviceToken","salt","encrypted"]},"HeartbeatRequest":{"type":"object","properties\#
        ":{"deviceId":{"type":"string","description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}\#
        $"},"boot":{"type":"integer","minimum":0,"maximum":9007199254740991},"sessionId":{"type":"\#
        string","minLength":1,"maxLength":64},"sequence":{"type":"integer","minimum":0,"maximum":9\#
        007199254740991},"agentVersion":{"type":"string"},"protocolVersion":{"type":["integer","nu\#
        ll"],"minimum":0,"maximum":1000000,"description":"what the agent speaks of this interface;\#
         absent: 1"},"uptimeSeconds":{"type":"integer","minimum":0,"maximum":9007199254740991},"st\#
        ate":{"type":"string","enum":["disconnected","connecting","connected","failed"]},"tunnelUp\#
        ":{"type":"boolean"},"rxBytes":{"type":"integer","minimum":0,"maximum":9007199254740991},"\#
        txBytes":{"type":"integer","minimum":0,"maximum":9007199254740991},"backend":{"type":["str\#
        ing","null"],"enum":["kernel","userspace",null]},"lastHandshake":{"type":["string","null"]\#
        ,"format":"date-time","description":"RFC 3339, UTC, whole seconds"},"configHash":{"type":[\#
        "string","null"]},"forwardsHash":{"type":["string","null"]},"rejectedHash":{"type":["strin\#
        g","null"]},"rejectedCode":{"type":["string","null"]},"commandId":{"type":["string","null"\#
        ],"description":"of the latest command that was done; empty: none yet"},"problems":{"type"\#
        :["array","null"],"items":{"type":"string"}}},"description":"What a device reports.","requ\#
        ired":["deviceId","boot","sessionId","sequence","agentVersion","uptimeSeconds","state","tu\#
        nnelUp","rxBytes","txBytes"]},"HeartbeatAnswer":{"type":"object","properties":{"configHash\#
        ":{"type":"string","description":"SHA-256 of what is meant, in hexadecimal digits"},"forwa\#
        rdsHash":{"type":"string","description":"SHA-256 of what is meant, in hexadecimal digits"}\#
        ,"serverTime":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whole se\#
        conds"},"salt":{"type":["string","null"]},"encrypted":{"type":["string","null"],"contentEn\#
        coding":"base64"},"forwards":{"type":["array","null"],"items":{"$ref":"#/components/schema\#
        s/Forward"}},"heartbeatSeconds":{"type":["integer","null"],"minimum":5,"maximum":3600,"des\#
        cription":"seconds between heartbeats"},"nextPin":{"type":["string","null"],"description":\#
        "sha256//\u2026"},"command":{"anyOf":[{"$ref":"#/components/schemas/DeviceCommand"},{"type\#
        ":"null"}]},"commandId":{"type":["string","null"],"description":"with command: tells one f\#
        rom the next"}},"description":"What a device is told. Configuration and forwards come only\#
         where its hashes differ.","required":["configHash","forwardsHash","serverTime"]},"DeviceC\#
        ommand":{"type":"object","properties":{"type":{"type":"string","description":"reset, repro\#
        vision or rotateKey; others are ignored"},"token":{"type":["string","null"],"format":"pass\#
        word","description":"with reprovision"}},"description":"Something to be done once.","requi\#
        red":["type"]},"Forward":{"type":"object","properties":{"id":{"type":"string","pattern":"^\#
        [A-Za-z0-9_-]{1,64}$"},"protocol":{"type":"string","enum":["tcp","udp"]},"publicPort":{"ty\#
        pe":"integer","minimum":1,"maximum":65535},"targetIp":{"type":"string"},"targetPort":{"typ\#
        e":"integer","minimum":1,"maximum":65535},"publicPortEnd":{"type":["integer","null"],"mini\#
        mum":1,"maximum":65535},"description":{"type":["string","null"]}},"description":"A port of\#
         the hub that leads to a device.","required":["id","protocol","publicPort","targetIp","tar\#
        getPort"]},"RotateRequest":{"type":"object","properties":{"publicKey":{"type":"string","de\#
        scription":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$\#
        "},"inUse":{"type":["boolean","null"],"description":"false: the device will say when it us\#
        es the key; true: it does from now on; absent: its first handshake tells"}},"description":\#
        "The public half of the device's next key.","required":["publicKey"]},"TokenAnswer":{"type\#
        ":"object","properties":{"deviceToken":{"type":"string","format":"password","pattern":"^[A\#
        -Za-z0-9_-]{43}$","description":"256 random bits in base64url"}},"description":"The next t\#
        oken; the former lives ten minutes more.","required":["deviceToken"]},"ConfigPeer":{"type"\#
        :"object","properties":{"publicKey":{"type":"string","description":"standard base64 of 32 \#
        bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"allowedIps":{"type":"string"},\#
        "presharedKey":{"type":["string","null"],"format":"password"},"endpoint":{"type":["string"\#
        ,"null"]},"persistentKeepalive":{"type":["integer","null"],"minimum":0,"maximum":65535},"n\#
        ame":{"type":["string","null"]}},"description":"A peer beside the hub.","required":["publi\#
        cKey","allowedIps"]},"WireGuardConfig":{"type":"object","properties":{"deviceId":{"type":"\#
        string","description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"internalIp":{"type\#
        ":"string","description":"addresses with prefix lengths, comma separated"},"serverPub":{"t\#
        ype":"string","description":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AE\#
        IMQUYcgkosw048]=$"},"endpoint":{"type":"string","description":"host:port or [v6]:port"},"a\#
        llowedIps":{"type":"string","description":"prefixes, comma separated"},"dns":{"type":["str\#
        ing","null"]},"privateKey":{"type":["string","null"],"format":"password"},"presharedKey":{\#
        "type":["string","null"],"format":"password"},"serverWgIp":{"type":["string","null"]},"mtu\#
        ":{"type":["integer","null"],"minimum":576,"maximum":65535},"persistentKeepalive":{"type":\#
        ["integer","null"],"minimum":0,"maximum":65535},"listenPort":{"type":["integer","null"],"m\#
        inimum":0,"maximum":65535},"peers":{"type":["array","null"],"items":{"$ref":"#/components/\#
        schemas/ConfigPeer"}},"configHash":{"type":["string","null"]},"forwardsHash":{"type":["str\#
        ing","null"]}},"description":"A device's tunnel: the plaintext of an envelope.","required"\#
        :["deviceId","internalIp","serverPub","endpoint","allowedIps"]},"LoginRequest":{"type":"ob\#
        ject","properties":{"name":{"type":"string"},"password":{"type":"string","format":"passwor\#
        d"}},"required":["name","password"]},"LoginAnswer":{"type":"object","properties":{"session\#
        ":{"type":"string","format":"password","pattern":"^[A-Za-z0-9_-]{43}$","description":"256 \#
        random bits in base64url"},"expires":{"type":"string","format":"date-time","description":"\#
        RFC 3339, UTC, whole seconds"}},"required":["session","expires"]},"TokenRequest":{"type":"\#
        object","properties":{"label":{"type":["string","null"],"maxLength":64,"description":"text\#
         of one line"},"maximumUses":{"type":["integer","null"],"minimum":0,"maximum":1000000,"des\#
        cription":"0: any number; absent: 1"},"lifeSeconds":{"type":["integer","null"],"minimum":6\#
        0,"maximum":31536000,"description":"absent: for ever"},"deviceId":{"type":["string","null"\#
        ],"description":"only for this device"}},"description":"An enrolment token to be made."},"\#
        TokenView":{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{\#
        1,64}$"},"label":{"type":"string"},"status":{"type":"string","enum":["usable","used","expi\#
        red","revoked"]},"created":{"type":"string","format":"date-time","description":"RFC 3339, \#
        UTC, whole seconds"},"uses":{"type":"integer","minimum":0},"expires":{"type":["string","nu\#
        ll"],"format":"date-time","description":"RFC 3339, UTC, whole seconds"},"maximumUses":{"ty\#
        pe":["integer","null"],"minimum":1,"description":"absent: any number"},"deviceId":{"type":\#
        ["string","null"],"description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"token":{\#
        "type":["string","null"],"format":"password","pattern":"^[A-Za-z0-9_-]{43}$","description"\#
        :"in the answer that makes it, and never again"}},"description":"An enrolment token.","req\#
        uired":["id","label","status","created","uses"]},"DevicePatchRequest":{"type":"object","pr\#
        operties":{"name":{"type":["string","null"],"maxLength":64,"description":"text of one line\#
        ","minLength":1},"networks":{"type":["array","null"],"items":{"type":"string","description\#
        ":"address/length"},"maxItems":256,"description":"prefixes behind the device"},"allowedIps\#
        ":{"type":["array","null"],"items":{"type":"string","description":"address/length"},"maxIt\#
        ems":256,"description":"what it routes to the hub; null: the network's"}},"description":"W\#
        hat is absent stays."},"HubSideView":{"type":"object","properties":{"rxBytes":{"type":"int\#
        eger","minimum":0,"maximum":9007199254740991},"txBytes":{"type":"integer","minimum":0,"max\#
        imum":9007199254740991},"endpoint":{"type":["string","null"]},"lastHandshake":{"type":["st\#
        ring","null"],"format":"date-time","description":"RFC 3339, UTC, whole seconds"}},"descrip\#
        tion":"The tunnel of a device as the hub's interface shows it.","required":["rxBytes","txB\#
        ytes"]},"TunnelView":{"type":"object","properties":{"state":{"type":"string","enum":["disc\#
        onnected","connecting","connected","failed"]},"isUp":{"type":"boolean"},"rxBytes":{"type":\#
        "integer","minimum":0,"maximum":9007199254740991},"txBytes":{"type":"integer","minimum":0,\#
        "maximum":9007199254740991},"backend":{"type":["string","null"],"enum":["kernel","userspac\#
        e",null]},"lastHandshake":{"type":["string","null"],"format":"date-time","description":"RF\#
        C 3339, UTC, whole seconds"},"hub":{"anyOf":[{"$ref":"#/components/schemas/HubSideView"},{\#
        "type":"null"}]}},"description":"The tunnel of a device as it reports it.","required":["st\#
        ate","isUp","rxBytes","txBytes"]},"DeviceView":{"type":"object","properties":{"id":{"type"\#
        :"string","description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"name":{"type":"s\#
        tring"},"hwid":{"type":"string"},"platform":{"type":"string"},"agentVersion":{"type":"stri\#
        ng"},"publicKey":{"type":"string","description":"standard base64 of 32 bytes","pattern":"^\#
        [A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"addresses":{"type":"array","items":{"type":"strin\#
        g"}},"networks":{"type":"array","items":{"type":"string"}},"control":{"type":"string","enu\#
        m":["pending","reporting","silent","revoked"]},"created":{"type":"string","format":"date-t\#
        ime","description":"RFC 3339, UTC, whole seconds"},"tunnel":{"$ref":"#/components/schemas/\#
        TunnelView"},"isInStep":{"type":"boolean","description":"it runs what it should"},"problem\#
        s":{"type":"array","items":{"type":"string"}},"forwards":{"type":["array","null"],"items":\#
        {"$ref":"#/components/schemas/ForwardView"},"description":"absent in lists"},"openAlarms":\#
        {"type":"integer","minimum":0},"allowedIps":{"type":["array","null"],"items":{"type":"stri\#
        ng"}},"lastSeen":{"type":["string","null"],"format":"date-time","description":"RFC 3339, U\#
        TC, whole seconds"},"revoked":{"type":["string","null"],"format":"date-time","description"\#
        :"RFC 3339, UTC, whole seconds"},"rejectedCode":{"type":["string","null"]},"command":{"typ\#
        e":["string","null"],"description":"waits for its next heartbeat"},"rotation":{"type":["st\#
        ring","null"],"enum":["offered","promised","moved",null]}},"description":"A device. `contr\#
        ol` is whether it reports, `tunnel` whether packets can flow.","required":["id","name","hw\#
        id","platform","agentVersion","publicKey","addresses","networks","control","created","tunn\#
        el","isInStep","problems","openAlarms"]},"ForwardRequest":{"type":"object","properties":{"\#
        deviceId":{"type":"string"},"protocol":{"type":"string","enum":["tcp","udp"]},"publicPort"\#
        :{"type":"integer","minimum":1,"maximum":65535},"id":{"type":["string","null"],"pattern":"\#
        ^[A-Za-z0-9_-]{1,64}$"},"publicPortEnd":{"type":["integer","null"],"minimum":1,"maximum":6\#
        5535},"targetIp":{"type":["string","null"],"description":"absent: the device's first addre\#
        ss"},"targetPort":{"type":["integer","null"],"minimum":1,"maximum":65535,"description":"ab\#
        sent: as publicPort"},"description":{"type":["string","null"],"maxLength":256},"keepsSourc\#
        e":{"type":["boolean","null"]},"isEnabled":{"type":["boolean","null"]}},"required":["devic\#
        eId","protocol","publicPort"]},"ForwardView":{"type":"object","properties":{"id":{"type":"\#
        string","pattern":"^[A-Za-z0-9_-]{1,64}$"},"deviceId":{"type":"string","description":"of a\#
         device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"protocol":{"type":"string","enum":["tcp","udp\#
        "]},"publicPort":{"type":"integer","minimum":1,"maximum":65535},"targetIp":{"type":"string\#
        "},"targetPort":{"type":"integer","minimum":1,"maximum":65535},"keepsSource":{"type":"bool\#
        ean"},"isEnabled":{"type":"boolean"},"publicPortEnd":{"type":["integer","null"],"minimum":\#
        1,"maximum":65535},"description":{"type":["string","null"]}},"required":["id","deviceId","\#
        protocol","publicPort","targetIp","targetPort","keepsSource","isEnabled"]},"AlarmView":{"t\#
        ype":"object","properties":{"id":{"type":"integer","minimum":1},"kind":{"type":"string"},"\#
        text":{"type":"string"},"raised":{"type":"string","format":"date-time","description":"RFC \#
        3339, UTC, whole seconds"},"deviceId":{"type":["string","null"],"description":"of a device\#
        ","pattern":"^[A-Za-z0-9_-]{1,64}$"},"cleared":{"type":["string","null"],"format":"date-ti\#
        me","description":"RFC 3339, UTC, whole seconds"},"acknowledged":{"type":["string","null"]\#
        ,"format":"date-time","description":"RFC 3339, UTC, whole seconds"}},"required":["id","kin\#
        d","text","raised"]},"LogView":{"type":"object","properties":{"id":{"type":"integer","mini\#
        mum":1},"time":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whole s\#
        econds"},"level":{"type":"string"},"tag":{"type":"string"},"message":{"type":"string"},"ac\#
        tor":{"type":"string"},"deviceId":{"type":["string","null"],"description":"of a device","p\#
        attern":"^[A-Za-z0-9_-]{1,64}$"}},"required":["id","time","level","tag","message","actor"]\#
        },"CountsView":{"type":"object","properties":{"devices":{"type":"integer","minimum":0},"pe\#
        nding":{"type":"integer","minimum":0},"reporting":{"type":"integer","minimum":0},"silent":\#
        {"type":"integer","minimum":0},"revoked":{"type":"integer","minimum":0},"tunnelsUp":{"type\#
        ":"integer","minimum":0},"tokens":{"type":"integer","minimum":0},"forwards":{"type":"integ\#
        er","minimum":0},"openAlarms":{"type":"integer","minimum":0}},"required":["devices","pendi\#
        ng","reporting","silent","revoked","tunnelsUp","tokens","forwards","openAlarms"]},"HubView\#
        ":{"type":"object","properties":{"schemaVersion":{"type":"integer","minimum":1},"version":\#
        {"type":"string"},"started":{"type":"string","format":"date-time","description":"RFC 3339,\#
         UTC, whole seconds"},"isSetUp":{"type":"boolean"},"publicKey":{"type":"string","descripti\#
        on":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"end\#
        point":{"type":"string"},"addresses":{"type":"array","items":{"type":"string"}},"interface\#
        ":{"type":"string"},"protection":{"type":"string","description":"how its secrets are kept"\#
        },"certificateExpires":{"type":["string","null"],"format":"date-time","description":"of th\#
        e certificate in use; absent: plain HTTP"},"pin":{"type":["string","null"],"description":"\#
        sha256//\u2026, for devices"},"storageProblem":{"type":["string","null"],"description":"ab\#
        sent: what devices report is on disk"},"keeperProblem":{"type":["string","null"],"descript\#
        ion":"absent: peers and forwards are applied"},"keeperApplied":{"type":["string","null"],"\#
        format":"date-time","description":"RFC 3339, UTC, whole seconds"}},"description":"The hub \#
        itself.","required":["schemaVersion","version","started","isSetUp","publicKey","endpoint",\#
        "addresses","interface","protection"]},"OperatorRequest":{"type":"object","properties":{"n\#
        ame":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$"},"password":{"type":"string","for\#
        mat":"password","minLength":12,"maxLength":1024}},"required":["name","password"]},"Operato\#
        rView":{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1\#
        ,64}$"},"created":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whol\#
        e seconds"}},"required":["name","created"]},"BackupRequest":{"type":"object","properties":\#
        {"passphrase":{"type":"string","format":"password","minLength":12,"maxLength":1024}},"requ\#
        ired":["passphrase"]},"Settings":{"type":"object","properties":{},"description":"All setti\#
        ngs by name, as text; empty: not set.","additionalProperties":{"type":"string"}},"TokenPag\#
        e":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/sc\#
        hemas/TokenView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","mini\#
        mum":0}},"description":"A part of a list; `total` counts all that the question fits.","req\#
        uired":["items","total","offset"]},"DevicePage":{"type":"object","properties":{"items":{"t\#
        ype":"array","items":{"$ref":"#/components/schemas/DeviceView"}},"total":{"type":"integer"\#
        ,"minimum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; `t\#
        otal` counts all that the question fits.","required":["items","total","offset"]},"ForwardP\#
        age":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/\#
        schemas/ForwardView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","\#
        minimum":0}},"description":"A part of a list; `total` counts all that the question fits.",\#
        "required":["items","total","offset"]},"AlarmPage":{"type":"object","properties":{"items":\#
        {"type":"array","items":{"$ref":"#/components/schemas/AlarmView"}},"total":{"type":"intege\#
        r","minimum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; \#
        `total` counts all that the question fits.","required":["items","total","offset"]},"LogPag\#
        e":{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/sc\#
        hemas/LogView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","minimu\#
        m":0}},"description":"A part of a list; `total` counts all that the question fits.","requi\#
        red":["items","total","offset"]},"OperatorPage":{"type":"object","properties":{"items":{"t\#
        ype":"array","items":{"$ref":"#/components/schemas/OperatorView"}},"total":{"type":"intege\#
        r","minimum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; \#
        `total` counts all that the question fits.","required":["items","total","offset"]}}}}
        """#
}
