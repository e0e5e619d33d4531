/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CNetlink: the host's links, addresses, routes and policy rules through rtnetlink(7), the kernel's
 * WireGuard through generic netlink, and a monitor of what changes.
 *
 * Thread-safety: a handle belongs to one thread at a time; handles share nothing.
 *
 * Errors: functions return 0 or a negative errno; netlink_explanation() then holds the kernel's own
 * words, if it had any. Nothing here blocks longer than NETLINK_TIMEOUT_SECONDS per message.
 */
#ifndef NEXUSGUARD_NETLINK_H
#define NEXUSGUARD_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The protocol number (rtm_protocol, FRA_PROTOCOL, IFA_PROTO) that marks what we add; nothing
 * without it is ever removed (C42, C46). 'N'; neither linux/rtnetlink.h (RTPROT_…) nor iproute2's
 * rt_protos gives 78 to anybody.
 */
#define NETLINK_OWN_PROTOCOL 0x4E

#define NETLINK_NAME_CAPACITY        16  /* IFNAMSIZ of net/if.h */
#define NETLINK_ALIAS_CAPACITY       257 /* IFALIASZ of linux/if.h and a NUL */
#define NETLINK_KIND_CAPACITY        56  /* MODULE_NAME_LEN of the kernel, which bounds the names */
#define NETLINK_EXPLANATION_CAPACITY 160
#define NETLINK_TIMEOUT_SECONDS      10
#define NETLINK_KEY_SIZE             32

/* ---- handle (socket.c) --------------------------------------------------------------------- */

enum netlink_subsystem { NETLINK_SUBSYSTEM_ROUTE, NETLINK_SUBSYSTEM_GENERIC };

struct netlink;

/* The network namespace is the one the thread is in now. */
int netlink_open(struct netlink **handle, enum netlink_subsystem subsystem);
void netlink_close(struct netlink *handle); /* NULL is fine */
/* The kernel's words about the last failure (its extended acknowledgement); "" without. */
const char *netlink_explanation(const struct netlink *handle);
/* The port number that echoes of this handle's changes carry. */
uint32_t netlink_port(const struct netlink *handle);

/* An address with a prefix length; IPv4 in the first four bytes. Network byte order. */
struct netlink_address {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t length; /* bits */
    uint8_t bytes[16];
};

/* ---- links (link.c); route handles --------------------------------------------------------- */

struct netlink_link {
    uint32_t index;
    uint32_t mtu;
    bool up;
    char name[NETLINK_NAME_CAPACITY];
    char kind[NETLINK_KIND_CAPACITY]; /* "" for hardware */
    char alias[NETLINK_ALIAS_CAPACITY];
};

struct netlink_links {
    struct netlink_link *items;
    size_t count;
};

int netlink_link_list(struct netlink *handle, struct netlink_links *links);
void netlink_links_free(struct netlink_links *links);
/* -ENODEV: there is none. */
int netlink_link_by_name(struct netlink *handle, const char *name, struct netlink_link *link);
int netlink_link_by_index(struct netlink *handle, uint32_t index, struct netlink_link *link);
/* -EEXIST: the name is taken; -EOPNOTSUPP: the kernel does not know the kind. */
int netlink_link_create(struct netlink *handle, const char *name, const char *kind);
/* Whether links of this kind can be made, without making one: 0, -EOPNOTSUPP or -EPERM. Loads the
 * kernel's module if there is one. */
int netlink_link_probe(struct netlink *handle, const char *kind);
/* -ENODEV: it is gone. */
int netlink_link_remove(struct netlink *handle, uint32_t index);
int netlink_link_set_mtu(struct netlink *handle, uint32_t index, uint32_t mtu);
int netlink_link_set_up(struct netlink *handle, uint32_t index, bool up);
int netlink_link_rename(struct netlink *handle, uint32_t index, const char *name);
int netlink_link_set_alias(struct netlink *handle, uint32_t index, const char *alias);

/* ---- addresses (address.c); route handles -------------------------------------------------- */

struct netlink_interface_address {
    struct netlink_address address;
    uint32_t index;
    uint8_t protocol; /* IFA_PROTO; 0: none, or a kernel before 5.18 */
    uint8_t scope;    /* RT_SCOPE_… */
};

struct netlink_interface_addresses {
    struct netlink_interface_address *items;
    size_t count;
};

/* Of one link; `index` 0: of all. */
int netlink_address_list(struct netlink *handle, uint32_t index,
                         struct netlink_interface_addresses *addresses);
void netlink_addresses_free(struct netlink_interface_addresses *addresses);
/* Marked as ours where the kernel can; usable at once, without duplicate address detection: nobody
 * else can hold an address of a tunnel's link. -EEXIST: the link has it. */
int netlink_address_add(struct netlink *handle, uint32_t index,
                        const struct netlink_address *address);
/* -EADDRNOTAVAIL: the link does not have it. */
int netlink_address_remove(struct netlink *handle, uint32_t index,
                           const struct netlink_address *address);
/* Whether the kernel remembers an address's protocol: Linux 5.18. */
bool netlink_marks_addresses(void);

/* ---- routes (route.c); route handles ------------------------------------------------------- */

struct netlink_route {
    struct netlink_address destination;
    uint32_t table;
    uint32_t metric; /* 0: the kernel's default, which IPv6 reports as 1024 */
    uint32_t index;  /* outgoing link; 0: none, as a blackhole has */
    uint8_t protocol;
    uint8_t type; /* RTN_… */
};

/* RTN_UNREACHABLE of linux/rtnetlink.h. */
#define NETLINK_ROUTE_UNREACHABLE 7

struct netlink_routes {
    struct netlink_route *items;
    size_t count;
};

/* Of both families and all tables; of a route with several next hops one for each. `protocol` and
 * `index` choose; 0: any. Routes of the kernel's cache are left out. */
int netlink_route_list(struct netlink *handle, uint8_t protocol, uint32_t index,
                       struct netlink_routes *routes);
void netlink_routes_free(struct netlink_routes *routes);
/* Through a link, without a gateway, or where `type` is NETLINK_ROUTE_UNREACHABLE to nowhere,
 * without a link; with our protocol. `protocol` and other types are not read. -EEXIST: the table
 * has one to this destination with this metric, ours or not. */
int netlink_route_add(struct netlink *handle, const struct netlink_route *route);
/* With few system calls. After an error some of them may have been added, and nobody knows which.
 */
int netlink_routes_add(struct netlink *handle, const struct netlink_route *routes, size_t count);
/* Only one of ours. -ESRCH: there is none. */
int netlink_route_remove(struct netlink *handle, const struct netlink_route *route);

struct netlink_path {
    uint32_t index;
    uint32_t table;
    uint32_t mtu;                   /* of the route if it has one, else 0: the link's counts */
    struct netlink_address gateway; /* family 0: on the link */
    struct netlink_address source;
};

/* Where a packet from here to `destination` goes. `mark` 0: none. -ENETUNREACH, -EHOSTUNREACH,
 * -EACCES, -EINVAL: nowhere, as no route, unreachable, prohibit and blackhole say it. */
int netlink_route_lookup(struct netlink *handle, const struct netlink_address *destination,
                         uint32_t mark, struct netlink_path *path);

/* ---- policy rules (rule.c); route handles -------------------------------------------------- */

#define NETLINK_NO_SUPPRESSION UINT32_MAX

struct netlink_rule {
    uint8_t family; /* 4 or 6 */
    uint8_t protocol;
    bool inverted;
    bool has_mark;
    bool plain; /* nothing but what stands here selects or acts */
    uint32_t priority;
    uint32_t table; /* 0: leads to none */
    uint32_t mark, mask;
    uint32_t suppress_prefix_length; /* or NETLINK_NO_SUPPRESSION */
};

struct netlink_rules {
    struct netlink_rule *items;
    size_t count;
};

int netlink_rule_list(struct netlink *handle, struct netlink_rules *rules);
void netlink_rules_free(struct netlink_rules *rules);
/* With our protocol; `protocol` and `plain` are not read. -EEXIST: one that selects the same. */
int netlink_rule_add(struct netlink *handle, const struct netlink_rule *rule);
/* Only one of ours. -ENOENT: there is none. */
int netlink_rule_remove(struct netlink *handle, const struct netlink_rule *rule);

/* ---- monitor (monitor.c) ------------------------------------------------------------------- */

enum netlink_event_kind {
    NETLINK_EVENT_NONE,
    NETLINK_EVENT_LINK,
    NETLINK_EVENT_LINK_GONE,
    NETLINK_EVENT_ADDRESS,
    NETLINK_EVENT_ADDRESS_GONE,
    NETLINK_EVENT_ROUTE,
    NETLINK_EVENT_ROUTE_GONE,
    NETLINK_EVENT_RULE,
    NETLINK_EVENT_RULE_GONE,
    NETLINK_EVENT_FORWARDING, /* net.ipv4.ip_forward or net.ipv6.conf.all.forwarding was written */
    NETLINK_EVENT_OVERFLOW,   /* some were lost: look at everything anew */
};

struct netlink_event {
    enum netlink_event_kind kind;
    uint8_t family;   /* 4 or 6; 0 for links */
    uint8_t protocol; /* of addresses, routes and rules; 0: unknown */
    uint32_t index;   /* 0: none */
    uint32_t table;   /* of routes and rules; 0: none */
    uint32_t port;    /* netlink_port() of who caused it; 0: the kernel does not say */
};

struct netlink_monitor;

int netlink_monitor_open(struct netlink_monitor **monitor);
void netlink_monitor_close(struct netlink_monitor *monitor); /* NULL is fine */
int netlink_monitor_descriptor(const struct netlink_monitor *monitor);
/* The next event, NETLINK_EVENT_NONE when none waits. A negative errno: the socket is broken. */
int netlink_monitor_next(struct netlink_monitor *monitor, struct netlink_event *event);

/* ---- the kernel's WireGuard (wireguard_get.c, wireguard_set.c); generic handles ------------ */

struct netlink_endpoint {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t bytes[16];
    uint16_t port;     /* host byte order, as all numbers here */
    uint32_t scope_id; /* of a link-local IPv6 address */
};

struct netlink_wireguard_peer {
    uint8_t public_key[NETLINK_KEY_SIZE];
    uint8_t preshared_key[NETLINK_KEY_SIZE]; /* zeros: none */
    struct netlink_endpoint endpoint;
    uint16_t keepalive; /* seconds; 0: off */
    int64_t last_handshake_seconds;
    uint32_t last_handshake_nanoseconds;
    uint64_t rx_bytes, tx_bytes;
    struct netlink_address *prefixes;
    size_t prefix_count;
};

struct netlink_wireguard_device {
    uint32_t index;
    bool has_private_key;
    uint8_t private_key[NETLINK_KEY_SIZE];
    uint8_t public_key[NETLINK_KEY_SIZE];
    uint16_t listen_port;
    uint32_t fwmark;
    struct netlink_wireguard_peer *peers; /* in the kernel's order */
    size_t peer_count;
};

/* -ENODEV: no link of that name; -EOPNOTSUPP: it is no WireGuard; -ENOENT: the kernel has none;
 * -EPERM; -EPROTO: what the kernel said makes no sense. Ends in netlink_wireguard_free(), which
 * erases the keys. */
int netlink_wireguard_get(struct netlink *handle, const char *name,
                          struct netlink_wireguard_device *device);
void netlink_wireguard_free(struct netlink_wireguard_device *device);

enum netlink_wireguard_field {
    NETLINK_WIREGUARD_PRIVATE_KEY = 1 << 0,
    NETLINK_WIREGUARD_LISTEN_PORT = 1 << 1,
    NETLINK_WIREGUARD_FWMARK = 1 << 2,
    NETLINK_WIREGUARD_REPLACE_PEERS = 1 << 3,

    NETLINK_WIREGUARD_PEER_REMOVE = 1 << 8,
    NETLINK_WIREGUARD_PEER_UPDATE_ONLY = 1 << 9,
    NETLINK_WIREGUARD_PEER_REPLACE_PREFIXES = 1 << 10,
    NETLINK_WIREGUARD_PEER_PRESHARED_KEY = 1 << 11,
    NETLINK_WIREGUARD_PEER_ENDPOINT = 1 << 12,
    NETLINK_WIREGUARD_PEER_KEEPALIVE = 1 << 13,
};

struct netlink_wireguard_change {
    uint32_t fields; /* what below counts */
    uint8_t private_key[NETLINK_KEY_SIZE];
    uint16_t listen_port;
    uint32_t fwmark;
};

struct netlink_wireguard_peer_change {
    uint32_t fields;
    uint8_t public_key[NETLINK_KEY_SIZE];
    uint8_t preshared_key[NETLINK_KEY_SIZE];
    struct netlink_endpoint endpoint;
    uint16_t keepalive;
    size_t first_prefix, prefix_count; /* a range of the prefixes given beside the peers */
};

struct netlink_wireguard_prefix_change {
    struct netlink_address prefix;
    bool remove; /* -EINVAL from a kernel before 6.16, which cannot take a prefix from a peer */
};

struct netlink_wireguard_changes {
    struct netlink_wireguard_change device;
    const struct netlink_wireguard_peer_change *peers;
    size_t peer_count;
    const struct netlink_wireguard_prefix_change *prefixes;
    size_t prefix_count;
};

/* In as many messages as needed; after an error those before it have taken effect. The caller
 * erases its keys. Errors as netlink_wireguard_get(); -EADDRINUSE: the port is taken. */
int netlink_wireguard_set(struct netlink *handle, const char *name,
                          const struct netlink_wireguard_changes *changes);

#endif
