// SPDX-License-Identifier: Apache-2.0

/// What `/api/v1/openapi.json` answers: the same as docs/openapi.json, which a test compares.
enum OpenAPIDocument {
    static let bytes = Array(text.utf8)
    static let text = "{}"
}
