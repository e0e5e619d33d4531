/* SPDX-License-Identifier: Apache-2.0 */
/* Between bytes and values: requests are written and answers read here, without a socket, so that
 * tests can look at every byte. Each builder returns the message it wrote into `request`. */
#ifndef CNETLINK_REQUESTS_H
#define CNETLINK_REQUESTS_H

#include "socket.h"

/* link.c */
struct nlmsghdr *link_get_request(struct netlink_request *request, const char *name,
                                  uint32_t index);
struct nlmsghdr *link_create_request(struct netlink_request *request, const char *name,
                                     const char *kind, const uint32_t *mtu);
struct nlmsghdr *link_change_request(struct netlink_request *request, uint16_t type,
                                     uint32_t index);
bool link_parse(const struct nlmsghdr *message, struct netlink_link *link);

/* address.c */
struct nlmsghdr *address_list_request(struct netlink_request *request, uint32_t index);
struct nlmsghdr *address_request(struct netlink_request *request, uint16_t type, uint32_t index,
                                 const struct netlink_address *address);
bool address_parse(const struct nlmsghdr *message, struct netlink_interface_address *address);

/* route.c */
struct nlmsghdr *route_list_request(struct netlink_request *request, uint8_t family,
                                    uint8_t protocol, uint32_t index);
struct nlmsghdr *route_request(struct netlink_request *request, uint16_t type,
                               const struct netlink_route *route);
struct nlmsghdr *route_lookup_request(struct netlink_request *request,
                                      const struct netlink_address *destination, uint32_t mark);
/* Appends what the message says; -ENOMEM. */
int route_parse(const struct nlmsghdr *message, struct netlink_routes *routes);
bool path_parse(const struct nlmsghdr *message, struct netlink_path *path);

/* rule.c */
struct nlmsghdr *rule_list_request(struct netlink_request *request);
struct nlmsghdr *rule_request(struct netlink_request *request, uint16_t type,
                              const struct netlink_rule *rule);
bool rule_parse(const struct nlmsghdr *message, struct netlink_rule *rule);

/* monitor.c */
bool event_parse(const struct nlmsghdr *message, struct netlink_event *event);

#endif
