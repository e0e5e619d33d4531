/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd(3), and shims for those of its functions that take a variable number of arguments,
 * which the Swift importer leaves out.
 */
#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef size_t (*http_unescape)(void *, struct MHD_Connection *, char *);

struct http_daemon_settings {
    int listening_socket; /* the daemon's, if it starts */
    unsigned threads;
    unsigned connection_limit;
    unsigned idle_seconds; /* without a byte in either direction */
    size_t memory_limit;   /* bytes for the head of a request and of its answer */
    /* PEM, and priorities of gnutls_priority_init(3); NULL: plain */
    const char *certificate, *key, *priorities;
    void *context; /* first argument of all that follow */
    MHD_AccessHandlerCallback handle;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection_changed;
    http_unescape unescape;
};

/* NULL: it did not start; the library does not say why. */
static inline struct MHD_Daemon *http_daemon_start(const struct http_daemon_settings *settings)
{
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, settings->listening_socket, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, settings->threads, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, settings->connection_limit, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, settings->idle_seconds, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)settings->memory_limit, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)settings->completed, settings->context},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)settings->connection_changed, settings->context},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)settings->unescape, settings->context},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)settings->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)settings->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)settings->priorities},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (settings->certificate == NULL) {
        tls[0].option = MHD_OPTION_END;
    } else {
        flags |= MHD_USE_TLS;
    }
    return MHD_start_daemon(flags, 0, NULL, NULL, settings->handle, settings->context,
                            MHD_OPTION_ARRAY, options, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static inline int http_connection_socket(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static inline const struct sockaddr *http_connection_address(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

/* What `connection_changed` stored; NULL before that. */
static inline void *http_connection_context(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}
