// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file: nothing crashes, and what is accepted is written so that it reads
// back the same. Compiled into one module with Sources/WireGuard.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    for lenient in [false, true] {
        guard
            let parsed = try? ConfigurationFile.parse(bytes.span, file: "fuzz", lenient: lenient)
        else { continue }
        let written = parsed.configuration.write()
        let again = try? ConfigurationFile.parse(written.span, file: "fuzz", lenient: lenient)
        precondition(again?.configuration == parsed.configuration)
    }
    return 0
}
