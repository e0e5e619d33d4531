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
        $ref":"#/components/schemas/Problem"}}}}},"security":[]}},"/api/v1/heartbeat":{"post":{"op\#
        erationId":"heartbeat","tags":["device"],"summary":"Report, and hear what changed","reques\#
        tBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/sche\#
        mas/HeartbeatRequest"}}}},"responses":{"200":{"description":"Done","content":{"application\#
        /json":{"schema":{"$ref":"#/components/schemas/HeartbeatAnswer"}}}},"400":{"$ref":"#/compo\#
        nents/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"\#
        $ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},\#
        "410":{"$ref":"#/components/responses/Revoked"},"415":{"$ref":"#/components/responses/Unsu\#
        pportedMediaType"},"429":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$re\#
        f":"#/components/responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/device/rotate"\#
        :{"post":{"operationId":"rotate","tags":["device"],"summary":"Offer the device's next key"\#
        ,"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/compone\#
        nts/schemas/RotateRequest"}}}},"responses":{"200":{"description":"Done","content":{"applic\#
        ation/json":{"schema":{"$ref":"#/components/schemas/EmptyAnswer"}}}},"400":{"$ref":"#/comp\#
        onents/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{\#
        "$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"}\#
        ,"410":{"$ref":"#/components/responses/Revoked"},"415":{"$ref":"#/components/responses/Uns\#
        upportedMediaType"},"429":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$r\#
        ef":"#/components/responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/device/token"\#
        :{"post":{"operationId":"renewToken","tags":["device"],"summary":"Renew the device's token\#
        ","responses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref"\#
        :"#/components/schemas/TokenAnswer"}}}},"401":{"$ref":"#/components/responses/Unauthorized\#
        "},"404":{"$ref":"#/components/responses/NotFound"},"410":{"$ref":"#/components/responses/\#
        Revoked"},"429":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$ref":"#/com\#
        ponents/responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/device/events":{"get":{\#
        "operationId":"deviceEvents","tags":["device"],"summary":"Be woken: config, forwards, comm\#
        and","responses":{"200":{"description":"Server-sent events","content":{"text/event-stream"\#
        :{"schema":{"type":"string"}}}},"401":{"$ref":"#/components/responses/Unauthorized"},"404"\#
        :{"$ref":"#/components/responses/NotFound"},"410":{"$ref":"#/components/responses/Revoked"\#
        },"429":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$ref":"#/components/\#
        responses/Problem"}},"security":[{"device":[]}]}},"/api/v1/unenroll":{"post":{"operationId\#
        ":"unenroll","tags":["device"],"summary":"Leave","responses":{"204":{"description":"Done"}\#
        ,"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/response\#
        s/NotFound"},"410":{"$ref":"#/components/responses/Revoked"},"429":{"$ref":"#/components/r\#
        esponses/TooManyRequests"},"default":{"$ref":"#/components/responses/Problem"}},"security"\#
        :[{"device":[]}]}},"/api/v1/admin/login":{"post":{"operationId":"logIn","tags":["session"]\#
        ,"summary":"Log in; twelve hours","requestBody":{"required":true,"content":{"application/j\#
        son":{"schema":{"$ref":"#/components/schemas/LoginRequest"}}}},"responses":{"200":{"descri\#
        ption":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/LoginA\#
        nswer"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/\#
        responses/Unauthorized"},"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"429\#
        ":{"$ref":"#/components/responses/TooManyRequests"},"default":{"$ref":"#/components/respon\#
        ses/Problem"}},"security":[]}},"/api/v1/admin/logout":{"post":{"operationId":"logOut","tag\#
        s":["session"],"summary":"Log out","responses":{"204":{"description":"Done"},"401":{"$ref"\#
        :"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"\#
        }},"security":[{"operator":[]}]}},"/api/v1/admin/tokens":{"get":{"operationId":"listTokens\#
        ","tags":["tokens"],"summary":"Enrolment tokens","parameters":[{"name":"offset","in":"quer\#
        y","schema":{"type":"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limit",\#
        "in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":100}}],"respon\#
        ses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/compo\#
        nents/schemas/TokenPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$r\#
        ef":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Probl\#
        em"}},"security":[{"operator":[]}]},"post":{"operationId":"makeToken","tags":["tokens"],"s\#
        ummary":"Make an enrolment token","requestBody":{"required":true,"content":{"application/j\#
        son":{"schema":{"$ref":"#/components/schemas/TokenRequest"}}}},"responses":{"201":{"descri\#
        ption":"Made; the only answer that shows it","content":{"application/json":{"schema":{"$re\#
        f":"#/components/schemas/TokenView"}}}},"400":{"$ref":"#/components/responses/BadRequest"}\#
        ,"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/response\#
        s/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"415":{"$ref":"#/components/\#
        responses/UnsupportedMediaType"},"default":{"$ref":"#/components/responses/Problem"}},"sec\#
        urity":[{"operator":[]}]}},"/api/v1/admin/tokens/{id}":{"delete":{"operationId":"revokeTok\#
        en","tags":["tokens"],"summary":"Revoke an enrolment token","parameters":[{"name":"id","in\#
        ":"path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"d\#
        escription":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/\#
        components/responses/NotFound"},"default":{"$ref":"#/components/responses/Problem"}},"secu\#
        rity":[{"operator":[]}]}},"/api/v1/admin/devices":{"get":{"operationId":"listDevices","tag\#
        s":["devices"],"summary":"Devices by name","parameters":[{"name":"search","in":"query","sc\#
        hema":{"type":"string"}},{"name":"control","in":"query","schema":{"type":"string","enum":[\#
        "pending","reporting","silent","revoked"]}},{"name":"offset","in":"query","schema":{"type"\#
        :"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limit","in":"query","schem\#
        a":{"type":"integer","minimum":1,"maximum":500,"default":50}}],"responses":{"200":{"descri\#
        ption":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Device\#
        Page"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/r\#
        esponses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{\#
        "operator":[]}]}},"/api/v1/admin/devices/{id}":{"get":{"operationId":"showDevice","tags":[\#
        "devices"],"summary":"One device","parameters":[{"name":"id","in":"path","required":true,"\#
        schema":{"type":"string","minLength":1}}],"responses":{"200":{"description":"Done","conten\#
        t":{"application/json":{"schema":{"$ref":"#/components/schemas/DeviceView"}}}},"401":{"$re\#
        f":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"}\#
        ,"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]},"patch\#
        ":{"operationId":"patchDevice","tags":["devices"],"summary":"Change a device","parameters"\#
        :[{"name":"id","in":"path","required":true,"schema":{"type":"string","minLength":1}}],"req\#
        uestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/s\#
        chemas/DevicePatchRequest"}}}},"responses":{"200":{"description":"Done","content":{"applic\#
        ation/json":{"schema":{"$ref":"#/components/schemas/DeviceView"}}}},"400":{"$ref":"#/compo\#
        nents/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"\#
        $ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},\#
        "415":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/componen\#
        ts/responses/Problem"}},"security":[{"operator":[]}]},"delete":{"operationId":"forgetDevic\#
        e","tags":["devices"],"summary":"Forget a revoked device","parameters":[{"name":"id","in":\#
        "path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"des\#
        cription":"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/co\#
        mponents/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"default":{\#
        "$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/de\#
        vices/{id}/config":{"get":{"operationId":"showDeviceConfig","tags":["devices"],"summary":"\#
        The configuration it should have, without its private key","parameters":[{"name":"id","in"\#
        :"path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"200":{"de\#
        scription":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Wi\#
        reGuardConfig"}}}},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/c\#
        omponents/responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"default":\#
        {"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/d\#
        evices/{id}/revoke":{"post":{"operationId":"revokeDevice","tags":["devices"],"summary":"Re\#
        voke a device","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"st\#
        ring","minLength":1}}],"responses":{"204":{"description":"Done"},"401":{"$ref":"#/componen\#
        ts/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"default":{"$\#
        ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/devi\#
        ces/{id}/reset":{"post":{"operationId":"resetDevice","tags":["devices"],"summary":"New han\#
        dshake with the hub, at its next heartbeat","parameters":[{"name":"id","in":"path","requir\#
        ed":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"description":"Don\#
        e"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/respo\#
        nses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"default":{"$ref":"#/comp\#
        onents/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/devices/{id}/rep\#
        rovision":{"post":{"operationId":"reprovisionDevice","tags":["devices"],"summary":"Enrol a\#
        gain, with a fresh token, at its next heartbeat","parameters":[{"name":"id","in":"path","r\#
        equired":true,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"description"\#
        :"Done"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/\#
        responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"default":{"$ref":"#\#
        /components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/devices/{id\#
        }/rotate":{"post":{"operationId":"rotateDevice","tags":["devices"],"summary":"Make a new k\#
        ey, at its next heartbeat","parameters":[{"name":"id","in":"path","required":true,"schema"\#
        :{"type":"string","minLength":1}}],"responses":{"204":{"description":"Done"},"401":{"$ref"\#
        :"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"\#
        409":{"$ref":"#/components/responses/Conflict"},"default":{"$ref":"#/components/responses/\#
        Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/forwards":{"get":{"operationId":"\#
        listForwards","tags":["forwards"],"summary":"Port forwards","parameters":[{"name":"deviceI\#
        d","in":"query","schema":{"type":"string"}},{"name":"offset","in":"query","schema":{"type"\#
        :"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limit","in":"query","schem\#
        a":{"type":"integer","minimum":1,"maximum":500,"default":100}}],"responses":{"200":{"descr\#
        iption":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Forwa\#
        rdPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components\#
        /responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"security":\#
        [{"operator":[]}]},"post":{"operationId":"addForward","tags":["forwards"],"summary":"Add a\#
         port forward","requestBody":{"required":true,"content":{"application/json":{"schema":{"$r\#
        ef":"#/components/schemas/ForwardRequest"}}}},"responses":{"201":{"description":"Added","c\#
        ontent":{"application/json":{"schema":{"$ref":"#/components/schemas/ForwardView"}}}},"400"\#
        :{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauth\#
        orized"},"404":{"$ref":"#/components/responses/NotFound"},"409":{"$ref":"#/components/resp\#
        onses/Conflict"},"415":{"$ref":"#/components/responses/UnsupportedMediaType"},"default":{"\#
        $ref":"#/components/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/for\#
        wards/{id}":{"get":{"operationId":"showForward","tags":["forwards"],"summary":"One port fo\#
        rward","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string","m\#
        inLength":1}}],"responses":{"200":{"description":"Done","content":{"application/json":{"sc\#
        hema":{"$ref":"#/components/schemas/ForwardView"}}}},"401":{"$ref":"#/components/responses\#
        /Unauthorized"},"404":{"$ref":"#/components/responses/NotFound"},"default":{"$ref":"#/comp\#
        onents/responses/Problem"}},"security":[{"operator":[]}]},"put":{"operationId":"replaceFor\#
        ward","tags":["forwards"],"summary":"Replace a port forward","parameters":[{"name":"id","i\#
        n":"path","required":true,"schema":{"type":"string","minLength":1}}],"requestBody":{"requi\#
        red":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/ForwardReq\#
        uest"}}}},"responses":{"200":{"description":"Done","content":{"application/json":{"schema"\#
        :{"$ref":"#/components/schemas/ForwardView"}}}},"400":{"$ref":"#/components/responses/BadR\#
        equest"},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/\#
        responses/NotFound"},"409":{"$ref":"#/components/responses/Conflict"},"415":{"$ref":"#/com\#
        ponents/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/responses/Problem\#
        "}},"security":[{"operator":[]}]},"delete":{"operationId":"removeForward","tags":["forward\#
        s"],"summary":"Remove a port forward","parameters":[{"name":"id","in":"path","required":tr\#
        ue,"schema":{"type":"string","minLength":1}}],"responses":{"204":{"description":"Done"},"4\#
        01":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/components/responses/N\#
        otFound"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]}\#
        ]}},"/api/v1/admin/status":{"get":{"operationId":"showStatus","tags":["hub"],"summary":"Th\#
        e hub itself","responses":{"200":{"description":"Done","content":{"application/json":{"sch\#
        ema":{"$ref":"#/components/schemas/HubView"}}}},"401":{"$ref":"#/components/responses/Unau\#
        thorized"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operator":[]\#
        }]}},"/api/v1/admin/counts":{"get":{"operationId":"showCounts","tags":["hub"],"summary":"H\#
        ow many of what","responses":{"200":{"description":"Done","content":{"application/json":{"\#
        schema":{"$ref":"#/components/schemas/CountsView"}}}},"401":{"$ref":"#/components/response\#
        s/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operat\#
        or":[]}]}},"/api/v1/admin/settings":{"get":{"operationId":"showSettings","tags":["hub"],"s\#
        ummary":"Settings","responses":{"200":{"description":"Done","content":{"application/json":\#
        {"schema":{"$ref":"#/components/schemas/Settings"}}}},"401":{"$ref":"#/components/response\#
        s/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"security":[{"operat\#
        or":[]}]},"patch":{"operationId":"changeSettings","tags":["hub"],"summary":"Change setting\#
        s; those that are absent stay","requestBody":{"required":true,"content":{"application/json\#
        ":{"schema":{"$ref":"#/components/schemas/Settings"}}}},"responses":{"200":{"description":\#
        "Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Settings"}}}}\#
        ,"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/components/responses/\#
        Unauthorized"},"409":{"$ref":"#/components/responses/Conflict"},"415":{"$ref":"#/component\#
        s/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/responses/Problem"}},"s\#
        ecurity":[{"operator":[]}]}},"/api/v1/admin/alarms":{"get":{"operationId":"listAlarms","ta\#
        gs":["hub"],"summary":"Alarms, newest first","parameters":[{"name":"state","in":"query","s\#
        chema":{"type":"string","enum":["open","all"]}},{"name":"offset","in":"query","schema":{"t\#
        ype":"integer","minimum":0,"maximum":1000000,"default":0}},{"name":"limit","in":"query","s\#
        chema":{"type":"integer","minimum":1,"maximum":500,"default":100}}],"responses":{"200":{"d\#
        escription":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas/A\#
        larmPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"$ref":"#/componen\#
        ts/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Problem"}},"security\#
        ":[{"operator":[]}]}},"/api/v1/admin/alarms/{id}/acknowledge":{"post":{"operationId":"ackn\#
        owledgeAlarm","tags":["hub"],"summary":"Acknowledge an alarm","parameters":[{"name":"id","\#
        in":"path","required":true,"schema":{"type":"string","minLength":1}}],"responses":{"200":{\#
        "description":"Done","content":{"application/json":{"schema":{"$ref":"#/components/schemas\#
        /AlarmView"}}}},"401":{"$ref":"#/components/responses/Unauthorized"},"404":{"$ref":"#/comp\#
        onents/responses/NotFound"},"default":{"$ref":"#/components/responses/Problem"}},"security\#
        ":[{"operator":[]}]}},"/api/v1/admin/logs":{"get":{"operationId":"listLogs","tags":["hub"]\#
        ,"summary":"The log, newest first","parameters":[{"name":"limit","in":"query","schema":{"t\#
        ype":"integer","minimum":1,"maximum":1000,"default":100}},{"name":"before","in":"query","s\#
        chema":{"type":"integer","minimum":1,"maximum":9007199254740991,"description":"only record\#
        s with smaller numbers"}},{"name":"deviceId","in":"query","schema":{"type":"string"}}],"re\#
        sponses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$ref":"#/c\#
        omponents/schemas/LogPage"}}}},"400":{"$ref":"#/components/responses/BadRequest"},"401":{"\#
        $ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Pro\#
        blem"}},"security":[{"operator":[]}]}},"/api/v1/admin/events":{"get":{"operationId":"opera\#
        torEvents","tags":["hub"],"summary":"Hear what changes","responses":{"200":{"description":\#
        "Server-sent events","content":{"text/event-stream":{"schema":{"type":"string"}}}},"401":{\#
        "$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components/responses/Pr\#
        oblem"}},"security":[{"operator":[]}]}},"/api/v1/admin/operators":{"get":{"operationId":"l\#
        istOperators","tags":["operators"],"summary":"Who may log in","parameters":[{"name":"offse\#
        t","in":"query","schema":{"type":"integer","minimum":0,"maximum":1000000,"default":0}},{"n\#
        ame":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":1\#
        00}}],"responses":{"200":{"description":"Done","content":{"application/json":{"schema":{"$\#
        ref":"#/components/schemas/OperatorPage"}}}},"400":{"$ref":"#/components/responses/BadRequ\#
        est"},"401":{"$ref":"#/components/responses/Unauthorized"},"default":{"$ref":"#/components\#
        /responses/Problem"}},"security":[{"operator":[]}]},"post":{"operationId":"setOperator","t\#
        ags":["operators"],"summary":"Add an operator, or set another password","requestBody":{"re\#
        quired":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Operato\#
        rRequest"}}}},"responses":{"201":{"description":"Set","content":{"application/json":{"sche\#
        ma":{"$ref":"#/components/schemas/OperatorView"}}}},"400":{"$ref":"#/components/responses/\#
        BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"415":{"$ref":"#/compone\#
        nts/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/responses/Problem"}},\#
        "security":[{"operator":[]}]}},"/api/v1/admin/operators/{name}":{"delete":{"operationId":"\#
        removeOperator","tags":["operators"],"summary":"Remove an operator; its sessions end","par\#
        ameters":[{"name":"name","in":"path","required":true,"schema":{"type":"string","minLength"\#
        :1}}],"responses":{"204":{"description":"Done"},"401":{"$ref":"#/components/responses/Unau\#
        thorized"},"404":{"$ref":"#/components/responses/NotFound"},"default":{"$ref":"#/component\#
        s/responses/Problem"}},"security":[{"operator":[]}]}},"/api/v1/admin/backup":{"post":{"ope\#
        rationId":"backUp","tags":["hub"],"summary":"Everything, sealed under a passphrase; on the\#
         hub's machine only","requestBody":{"required":true,"content":{"application/json":{"schema\#
        ":{"$ref":"#/components/schemas/BackupRequest"}}}},"responses":{"200":{"description":"The \#
        backup","content":{"application/octet-stream":{"schema":{}}}},"400":{"$ref":"#/components/\#
        responses/BadRequest"},"401":{"$ref":"#/components/responses/Unauthorized"},"415":{"$ref":\#
        "#/components/responses/UnsupportedMediaType"},"default":{"$ref":"#/components/responses/P\#
        roblem"},"403":{"description":"forbidden: not over the network","content":{"application/pr\#
        oblem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}}},"security":[{"operator":\#
        []}]}}},"components":{"securitySchemes":{"device":{"type":"http","scheme":"bearer","descri\#
        ption":"a deviceToken"},"operator":{"type":"http","scheme":"bearer","description":"a sessi\#
        on of login; the unix socket needs none"}},"responses":{"BadRequest":{"description":"bad_r\#
        equest: the request is malformed","content":{"application/problem+json":{"schema":{"$ref":\#
        "#/components/schemas/Problem"}}}},"Unauthorized":{"description":"auth_expired: the creden\#
        tial is not valid","content":{"application/problem+json":{"schema":{"$ref":"#/components/s\#
        chemas/Problem"}}},"headers":{"WWW-Authenticate":{"schema":{"type":"string"}}}},"NotFound"\#
        :{"description":"not_found, or unknown_device on a device's call","content":{"application/\#
        problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"Conflict":{"descriptio\#
        n":"conflict: it conflicts with what is there; duplicate_identity on a device's call","con\#
        tent":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"Re\#
        voked":{"description":"revoked: the operator removed this device","content":{"application/\#
        problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"UnsupportedMediaType":\#
        {"description":"unsupported_media_type: the body is sent as application/json","content":{"\#
        application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}},"TooManyReq\#
        uests":{"description":"too_many_requests","content":{"application/problem+json":{"schema":\#
        {"$ref":"#/components/schemas/Problem"}}},"headers":{"Retry-After":{"schema":{"type":"inte\#
        ger","minimum":0}}}},"Problem":{"description":"any other: status and code belong together"\#
        ,"content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}}\#
        }},"schemas":{"Problem":{"type":"object","properties":{"type":{"type":"string"},"title":{"\#
        type":"string"},"status":{"type":"integer","minimum":400,"maximum":599},"code":{"type":"st\#
        ring","enum":["bad_request","public_key_required","token_expired","auth_expired","token_re\#
        fused","forbidden","unknown_device","not_found","method_not_allowed","duplicate_identity",\#
        "conflict","revoked","too_large","unsupported_media_type","upgrade_required","too_many_req\#
        uests","internal_error","unavailable"]},"detail":{"type":["string","null"]},"deviceId":{"t\#
        ype":["string","null"],"description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"}},"de\#
        scription":"Problem details (RFC 9457). `code` decides, never the status alone.","required\#
        ":["type","title","status","code"]},"EmptyAnswer":{"type":"object","properties":{},"descri\#
        ption":"Nothing but that it was done."},"ProvisionRequest":{"type":"object","properties":{\#
        "token":{"type":"string","format":"password"},"hwid":{"type":"string","pattern":"^[0-9a-f]\#
        {32}$","description":"machine id made for this application"},"publicKey":{"type":["string"\#
        ,"null"],"description":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUY\#
        cgkosw048]=$"},"name":{"type":["string","null"],"maxLength":64,"description":"text of one \#
        line"},"platform":{"type":["string","null"],"maxLength":64,"description":"text of one line\#
        "},"agentVersion":{"type":["string","null"],"maxLength":64,"description":"text of one line\#
        "}},"description":"A device asks to be enrolled.","required":["token","hwid"]},"ProvisionA\#
        nswer":{"type":"object","properties":{"deviceId":{"type":"string","format":"uuid"},"device\#
        Token":{"type":"string","format":"password","pattern":"^[A-Za-z0-9_-]{43}$","description":\#
        "256 random bits in base64url"},"salt":{"type":"string","pattern":"^[0-9a-f]{32}$"},"encry\#
        pted":{"type":"string","contentEncoding":"base64","description":"a WireGuardConfig in an e\#
        nvelope: docs/control-api.md"},"heartbeatSeconds":{"type":["integer","null"],"minimum":5,"\#
        maximum":3600,"description":"seconds between heartbeats"}},"description":"What an enrolled\#
         device gets.","required":["deviceId","deviceToken","salt","encrypted"]},"HeartbeatRequest\#
        ":{"type":"object","properties":{"deviceId":{"type":"string","description":"of a device","\#
        pattern":"^[A-Za-z0-9_-]{1,64}$"},"boot":{"type":"integer","minimum":0,"maximum":900719925\#
        4740991},"sessionId":{"type":"string","minLength":1,"maxLength":64},"sequence":{"type":"in\#
        teger","minimum":0,"maximum":9007199254740991},"agentVersion":{"type":"string"},"uptimeSec\#
        onds":{"type":"integer","minimum":0,"maximum":9007199254740991},"state":{"type":"string","\#
        enum":["disconnected","connecting","connected","failed"]},"tunnelUp":{"type":"boolean"},"r\#
        xBytes":{"type":"integer","minimum":0,"maximum":9007199254740991},"txBytes":{"type":"integ\#
        er","minimum":0,"maximum":9007199254740991},"backend":{"type":["string","null"],"enum":["k\#
        ernel","userspace",null]},"lastHandshake":{"type":["string","null"],"format":"date-time","\#
        description":"RFC 3339, UTC, whole seconds"},"configHash":{"type":["string","null"]},"forw\#
        ardsHash":{"type":["string","null"]},"rejectedHash":{"type":["string","null"]},"rejectedCo\#
        de":{"type":["string","null"]},"commandId":{"type":["string","null"],"description":"of the\#
         latest command that was done; empty: none yet"},"problems":{"type":["array","null"],"item\#
        s":{"type":"string"}}},"description":"What a device reports.","required":["deviceId","boot\#
        ","sessionId","sequence","agentVersion","uptimeSeconds","state","tunnelUp","rxBytes","txBy\#
        tes"]},"HeartbeatAnswer":{"type":"object","properties":{"configHash":{"type":"string","des\#
        cription":"SHA-256 of what is meant, in hexadecimal digits"},"forwardsHash":{"type":"strin\#
        g","description":"SHA-256 of what is meant, in hexadecimal digits"},"serverTime":{"type":"\#
        string","format":"date-time","description":"RFC 3339, UTC, whole seconds"},"salt":{"type":\#
        ["string","null"]},"encrypted":{"type":["string","null"],"contentEncoding":"base64"},"forw\#
        ards":{"type":["array","null"],"items":{"$ref":"#/components/schemas/Forward"}},"heartbeat\#
        Seconds":{"type":["integer","null"],"minimum":5,"maximum":3600,"description":"seconds betw\#
        een heartbeats"},"nextPin":{"type":["string","null"],"description":"sha256//\u2026"},"comm\#
        and":{"anyOf":[{"$ref":"#/components/schemas/DeviceCommand"},{"type":"null"}]},"commandId"\#
        :{"type":["string","null"],"description":"with command: tells one from the next"}},"descri\#
        ption":"What a device is told. Configuration and forwards come only where its hashes diffe\#
        r.","required":["configHash","forwardsHash","serverTime"]},"DeviceCommand":{"type":"object\#
        ","properties":{"type":{"type":"string","description":"reset, reprovision or rotateKey; ot\#
        hers are ignored"},"token":{"type":["string","null"],"format":"password","description":"wi\#
        th reprovision"}},"description":"Something to be done once.","required":["type"]},"Forward\#
        ":{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},\#
        "protocol":{"type":"string","enum":["tcp","udp"]},"publicPort":{"type":"integer","minimum"\#
        :1,"maximum":65535},"targetIp":{"type":"string"},"targetPort":{"type":"integer","minimum":\#
        1,"maximum":65535},"publicPortEnd":{"type":["integer","null"],"minimum":1,"maximum":65535}\#
        ,"description":{"type":["string","null"]}},"description":"A port of the hub that leads to \#
        a device.","required":["id","protocol","publicPort","targetIp","targetPort"]},"RotateReque\#
        st":{"type":"object","properties":{"publicKey":{"type":"string","description":"standard ba\#
        se64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"inUse":{"type":["bo\#
        olean","null"],"description":"false: the device will say when it uses the key; true: it do\#
        es from now on; absent: its first handshake tells"}},"description":"The public half of the\#
         device's next key.","required":["publicKey"]},"TokenAnswer":{"type":"object","properties"\#
        :{"deviceToken":{"type":"string","format":"password","pattern":"^[A-Za-z0-9_-]{43}$","desc\#
        ription":"256 random bits in base64url"}},"description":"The next token; the former lives \#
        ten minutes more.","required":["deviceToken"]},"ConfigPeer":{"type":"object","properties":\#
        {"publicKey":{"type":"string","description":"standard base64 of 32 bytes","pattern":"^[A-Z\#
        a-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"allowedIps":{"type":"string"},"presharedKey":{"type":\#
        ["string","null"],"format":"password"},"endpoint":{"type":["string","null"]},"persistentKe\#
        epalive":{"type":["integer","null"],"minimum":0,"maximum":65535},"name":{"type":["string",\#
        "null"]}},"description":"A peer beside the hub.","required":["publicKey","allowedIps"]},"W\#
        ireGuardConfig":{"type":"object","properties":{"deviceId":{"type":"string","description":"\#
        of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"internalIp":{"type":"string","description\#
        ":"addresses with prefix lengths, comma separated"},"serverPub":{"type":"string","descript\#
        ion":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$"},"en\#
        dpoint":{"type":"string","description":"host:port or [v6]:port"},"allowedIps":{"type":"str\#
        ing","description":"prefixes, comma separated"},"dns":{"type":["string","null"]},"privateK\#
        ey":{"type":["string","null"],"format":"password"},"presharedKey":{"type":["string","null"\#
        ],"format":"password"},"serverWgIp":{"type":["string","null"]},"mtu":{"type":["integer","n\#
        ull"],"minimum":576,"maximum":65535},"persistentKeepalive":{"type":["integer","null"],"min\#
        imum":0,"maximum":65535},"listenPort":{"type":["integer","null"],"minimum":0,"maximum":655\#
        35},"peers":{"type":["array","null"],"items":{"$ref":"#/components/schemas/ConfigPeer"}},"\#
        configHash":{"type":["string","null"]},"forwardsHash":{"type":["string","null"]}},"descrip\#
        tion":"A device's tunnel: the plaintext of an envelope.","required":["deviceId","internalI\#
        p","serverPub","endpoint","allowedIps"]},"LoginRequest":{"type":"object","properties":{"na\#
        me":{"type":"string"},"password":{"type":"string","format":"password"}},"required":["name"\#
        ,"password"]},"LoginAnswer":{"type":"object","properties":{"session":{"type":"string","for\#
        mat":"password","pattern":"^[A-Za-z0-9_-]{43}$","description":"256 random bits in base64ur\#
        l"},"expires":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whole se\#
        conds"}},"required":["session","expires"]},"TokenRequest":{"type":"object","properties":{"\#
        label":{"type":["string","null"],"maxLength":64,"description":"text of one line"},"maximum\#
        Uses":{"type":["integer","null"],"minimum":0,"maximum":1000000,"description":"0: any numbe\#
        r; absent: 1"},"lifeSeconds":{"type":["integer","null"],"minimum":60,"maximum":31536000,"d\#
        escription":"absent: for ever"},"deviceId":{"type":["string","null"],"description":"only f\#
        or this device"}},"description":"An enrolment token to be made."},"TokenView":{"type":"obj\#
        ect","properties":{"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},"label":{"type\#
        ":"string"},"status":{"type":"string","enum":["usable","used","expired","revoked"]},"creat\#
        ed":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whole seconds"},"u\#
        ses":{"type":"integer","minimum":0},"expires":{"type":["string","null"],"format":"date-tim\#
        e","description":"RFC 3339, UTC, whole seconds"},"maximumUses":{"type":["integer","null"],\#
        "minimum":1,"description":"absent: any number"},"deviceId":{"type":["string","null"],"desc\#
        ription":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"token":{"type":["string","null"\#
        ],"format":"password","pattern":"^[A-Za-z0-9_-]{43}$","description":"in the answer that ma\#
        kes it, and never again"}},"description":"An enrolment token.","required":["id","label","s\#
        tatus","created","uses"]},"DevicePatchRequest":{"type":"object","properties":{"name":{"typ\#
        e":["string","null"],"maxLength":64,"description":"text of one line","minLength":1},"netwo\#
        rks":{"type":["array","null"],"items":{"type":"string","description":"address/length"},"ma\#
        xItems":256,"description":"prefixes behind the device"},"allowedIps":{"type":["array","nul\#
        l"],"items":{"type":"string","description":"address/length"},"maxItems":256,"description":\#
        "what it routes to the hub; null: the network's"}},"description":"What is absent stays."},\#
        "HubSideView":{"type":"object","properties":{"rxBytes":{"type":"integer","minimum":0,"maxi\#
        mum":9007199254740991},"txBytes":{"type":"integer","minimum":0,"maximum":9007199254740991}\#
        ,"endpoint":{"type":["string","null"]},"lastHandshake":{"type":["string","null"],"format":\#
        "date-time","description":"RFC 3339, UTC, whole seconds"}},"description":"The tunnel of a \#
        device as the hub's interface shows it.","required":["rxBytes","txBytes"]},"TunnelView":{"\#
        type":"object","properties":{"state":{"type":"string","enum":["disconnected","connecting",\#
        "connected","failed"]},"isUp":{"type":"boolean"},"rxBytes":{"type":"integer","minimum":0,"\#
        maximum":9007199254740991},"txBytes":{"type":"integer","minimum":0,"maximum":9007199254740\#
        991},"backend":{"type":["string","null"],"enum":["kernel","userspace",null]},"lastHandshak\#
        e":{"type":["string","null"],"format":"date-time","description":"RFC 3339, UTC, whole seco\#
        nds"},"hub":{"anyOf":[{"$ref":"#/components/schemas/HubSideView"},{"type":"null"}]}},"desc\#
        ription":"The tunnel of a device as it reports it.","required":["state","isUp","rxBytes","\#
        txBytes"]},"DeviceView":{"type":"object","properties":{"id":{"type":"string","description"\#
        :"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"name":{"type":"string"},"hwid":{"type":\#
        "string"},"platform":{"type":"string"},"agentVersion":{"type":"string"},"publicKey":{"type\#
        ":"string","description":"standard base64 of 32 bytes","pattern":"^[A-Za-z0-9+/]{42}[AEIMQ\#
        UYcgkosw048]=$"},"addresses":{"type":"array","items":{"type":"string"}},"networks":{"type"\#
        :"array","items":{"type":"string"}},"control":{"type":"string","enum":["pending","reportin\#
        g","silent","revoked"]},"created":{"type":"string","format":"date-time","description":"RFC\#
         3339, UTC, whole seconds"},"tunnel":{"$ref":"#/components/schemas/TunnelView"},"isInStep"\#
        :{"type":"boolean","description":"it runs what it should"},"problems":{"type":"array","ite\#
        ms":{"type":"string"}},"openAlarms":{"type":"integer","minimum":0},"allowedIps":{"type":["\#
        array","null"],"items":{"type":"string"}},"lastSeen":{"type":["string","null"],"format":"d\#
        ate-time","description":"RFC 3339, UTC, whole seconds"},"revoked":{"type":["string","null"\#
        ],"format":"date-time","description":"RFC 3339, UTC, whole seconds"},"rejectedCode":{"type\#
        ":["string","null"]},"command":{"type":["string","null"],"description":"waits for its next\#
         heartbeat"},"rotation":{"type":["string","null"],"enum":["offered","promised","moved",nul\#
        l]}},"description":"A device. `control` is whether it reports, `tunnel` whether packets ca\#
        n flow.","required":["id","name","hwid","platform","agentVersion","publicKey","addresses",\#
        "networks","control","created","tunnel","isInStep","problems","openAlarms"]},"ForwardReque\#
        st":{"type":"object","properties":{"deviceId":{"type":"string"},"protocol":{"type":"string\#
        ","enum":["tcp","udp"]},"publicPort":{"type":"integer","minimum":1,"maximum":65535},"id":{\#
        "type":["string","null"],"pattern":"^[A-Za-z0-9_-]{1,64}$"},"publicPortEnd":{"type":["inte\#
        ger","null"],"minimum":1,"maximum":65535},"targetIp":{"type":["string","null"],"descriptio\#
        n":"absent: the device's first address"},"targetPort":{"type":["integer","null"],"minimum"\#
        :1,"maximum":65535,"description":"absent: as publicPort"},"description":{"type":["string",\#
        "null"],"maxLength":256},"keepsSource":{"type":["boolean","null"]},"isEnabled":{"type":["b\#
        oolean","null"]}},"required":["deviceId","protocol","publicPort"]},"ForwardView":{"type":"\#
        object","properties":{"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},"deviceId":\#
        {"type":"string","description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"protocol"\#
        :{"type":"string","enum":["tcp","udp"]},"publicPort":{"type":"integer","minimum":1,"maximu\#
        m":65535},"targetIp":{"type":"string"},"targetPort":{"type":"integer","minimum":1,"maximum\#
        ":65535},"keepsSource":{"type":"boolean"},"isEnabled":{"type":"boolean"},"publicPortEnd":{\#
        "type":["integer","null"],"minimum":1,"maximum":65535},"description":{"type":["string","nu\#
        ll"]}},"required":["id","deviceId","protocol","publicPort","targetIp","targetPort","keepsS\#
        ource","isEnabled"]},"AlarmView":{"type":"object","properties":{"id":{"type":"integer","mi\#
        nimum":1},"kind":{"type":"string"},"text":{"type":"string"},"raised":{"type":"string","for\#
        mat":"date-time","description":"RFC 3339, UTC, whole seconds"},"deviceId":{"type":["string\#
        ","null"],"description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"},"cleared":{"type"\#
        :["string","null"],"format":"date-time","description":"RFC 3339, UTC, whole seconds"},"ack\#
        nowledged":{"type":["string","null"],"format":"date-time","description":"RFC 3339, UTC, wh\#
        ole seconds"}},"required":["id","kind","text","raised"]},"LogView":{"type":"object","prope\#
        rties":{"id":{"type":"integer","minimum":1},"time":{"type":"string","format":"date-time","\#
        description":"RFC 3339, UTC, whole seconds"},"level":{"type":"string"},"tag":{"type":"stri\#
        ng"},"message":{"type":"string"},"actor":{"type":"string"},"deviceId":{"type":["string","n\#
        ull"],"description":"of a device","pattern":"^[A-Za-z0-9_-]{1,64}$"}},"required":["id","ti\#
        me","level","tag","message","actor"]},"CountsView":{"type":"object","properties":{"devices\#
        ":{"type":"integer","minimum":0},"pending":{"type":"integer","minimum":0},"reporting":{"ty\#
        pe":"integer","minimum":0},"silent":{"type":"integer","minimum":0},"revoked":{"type":"inte\#
        ger","minimum":0},"tunnelsUp":{"type":"integer","minimum":0},"tokens":{"type":"integer","m\#
        inimum":0},"forwards":{"type":"integer","minimum":0},"openAlarms":{"type":"integer","minim\#
        um":0}},"required":["devices","pending","reporting","silent","revoked","tunnelsUp","tokens\#
        ","forwards","openAlarms"]},"HubView":{"type":"object","properties":{"schemaVersion":{"typ\#
        e":"integer","minimum":1},"version":{"type":"string"},"started":{"type":"string","format":\#
        "date-time","description":"RFC 3339, UTC, whole seconds"},"isSetUp":{"type":"boolean"},"pu\#
        blicKey":{"type":"string","description":"standard base64 of 32 bytes","pattern":"^[A-Za-z0\#
        -9+/]{42}[AEIMQUYcgkosw048]=$"},"endpoint":{"type":"string"},"addresses":{"type":"array","\#
        items":{"type":"string"}},"interface":{"type":"string"},"protection":{"type":"string","des\#
        cription":"how its secrets are kept"},"pin":{"type":["string","null"],"description":"sha25\#
        6//\u2026, for devices"},"storageProblem":{"type":["string","null"],"description":"absent:\#
         what devices report is on disk"},"keeperProblem":{"type":["string","null"],"description":\#
        "absent: peers and forwards are applied"},"keeperApplied":{"type":["string","null"],"forma\#
        t":"date-time","description":"RFC 3339, UTC, whole seconds"}},"description":"The hub itsel\#
        f.","required":["schemaVersion","version","started","isSetUp","publicKey","endpoint","addr\#
        esses","interface","protection"]},"OperatorRequest":{"type":"object","properties":{"name":\#
        {"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$"},"password":{"type":"string","format":\#
        "password","minLength":12,"maxLength":1024}},"required":["name","password"]},"OperatorView\#
        ":{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$\#
        "},"created":{"type":"string","format":"date-time","description":"RFC 3339, UTC, whole sec\#
        onds"}},"required":["name","created"]},"BackupRequest":{"type":"object","properties":{"pas\#
        sphrase":{"type":"string","format":"password","minLength":12,"maxLength":1024}},"required"\#
        :["passphrase"]},"Settings":{"type":"object","properties":{},"description":"All settings b\#
        y name, as text; empty: not set.","additionalProperties":{"type":"string"}},"TokenPage":{"\#
        type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas\#
        /TokenView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","minimum":\#
        0}},"description":"A part of a list; `total` counts all that the question fits.","required\#
        ":["items","total","offset"]},"DevicePage":{"type":"object","properties":{"items":{"type":\#
        "array","items":{"$ref":"#/components/schemas/DeviceView"}},"total":{"type":"integer","min\#
        imum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; `total`\#
         counts all that the question fits.","required":["items","total","offset"]},"ForwardPage":\#
        {"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/schem\#
        as/ForwardView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","minim\#
        um":0}},"description":"A part of a list; `total` counts all that the question fits.","requ\#
        ired":["items","total","offset"]},"AlarmPage":{"type":"object","properties":{"items":{"typ\#
        e":"array","items":{"$ref":"#/components/schemas/AlarmView"}},"total":{"type":"integer","m\#
        inimum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; `tota\#
        l` counts all that the question fits.","required":["items","total","offset"]},"LogPage":{"\#
        type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas\#
        /LogView"}},"total":{"type":"integer","minimum":0},"offset":{"type":"integer","minimum":0}\#
        },"description":"A part of a list; `total` counts all that the question fits.","required":\#
        ["items","total","offset"]},"OperatorPage":{"type":"object","properties":{"items":{"type":\#
        "array","items":{"$ref":"#/components/schemas/OperatorView"}},"total":{"type":"integer","m\#
        inimum":0},"offset":{"type":"integer","minimum":0}},"description":"A part of a list; `tota\#
        l` counts all that the question fits.","required":["items","total","offset"]}}}}
        """#
}
