// SPDX-License-Identifier: Apache-2.0
// The library's callbacks. All of one connection run on one of its threads, in this order:
// connection started, (handle … handle, completed) for each request, connection closed.
import CMicroHTTPD
import Glibc
import Synchronization

/// `self` in `settings.context` outlives the daemon.
func installCallbacks(_ settings: inout http_daemon_settings) {
    unsafe settings.connection_changed = { context, connection, slot, change in
        unsafe connectionChanged(core(context), connection!, slot!, change)
    }
    unsafe settings.handle = { context, connection, path, method, version, bytes, count, slot in
        unsafe handle(
            core(context), connection!, path!, method!, version!, bytes, count!, slot!)
    }
    unsafe settings.completed = { context, _, slot, _ in
        guard let exchange = unsafe slot!.pointee else { return }
        unsafe slot!.pointee = nil
        unsafe Unmanaged<Exchange>.fromOpaque(exchange).takeRetainedValue().complete(core(context))
    }
    // The path reaches the handler as it came; the query is decoded here.
    unsafe settings.unescape = { _, _, text in unsafe strlen(text!) }
}

private func core(_ context: UnsafeMutableRawPointer?) -> ServerCore {
    unsafe Unmanaged<ServerCore>.fromOpaque(context!).takeUnretainedValue()
}

private func connectionChanged(
    _ core: ServerCore, _ connection: OpaquePointer,
    _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>,
    _ change: MHD_ConnectionNotificationCode
) {
    if change == .CONNECTION_NOTIFY_STARTED {
        let socket = unsafe http_connection_socket(connection)
        let origin = unsafe HTTPRequest.Origin(
            socket: socket, address: http_connection_address(connection))
        let made = unsafe ServerConnection(
            socket: socket, origin: origin,
            network: ClientNetwork(http_connection_address(connection)))
        made.expectEnd(within: core.options.headDeadline)
        core.connections.add(made)
        unsafe slot.pointee = Unmanaged.passRetained(made).toOpaque()
    } else if let known = unsafe slot.pointee {
        unsafe slot.pointee = nil
        core.connections.remove(
            unsafe Unmanaged<ServerConnection>.fromOpaque(known).takeRetainedValue())
    }
}

/// First called at the end of the head, then for each piece of the body, then at its end.
private func handle(
    _ core: ServerCore, _ connection: OpaquePointer, _ path: UnsafePointer<CChar>,
    _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>,
    _ bytes: UnsafePointer<CChar>?,
    _ count: UnsafeMutablePointer<Int>, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>
) -> MHD_Result {
    guard let known = unsafe slot.pointee else {
        guard let context = unsafe http_connection_context(connection) else { return .NO }
        let exchange = unsafe Exchange(
            Unmanaged<ServerConnection>.fromOpaque(context).takeUnretainedValue())
        unsafe slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
        return unsafe exchange.begin(core, connection, String(cString: version))
    }
    let exchange = unsafe Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
    if unsafe count.pointee > 0 {
        let piece = unsafe UnsafeRawBufferPointer(start: bytes, count: count.pointee)
        unsafe count.pointee = 0
        return unsafe exchange.receive(piece, core)
    }
    return unsafe exchange.answer(
        core, connection, String(cString: method), String(cString: path))
}
