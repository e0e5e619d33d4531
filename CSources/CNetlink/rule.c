// SPDX-License-Identifier: Apache-2.0
/* Routing policy rules: ip-rule(8), RTM_…RULE, linux/fib_rules.h. */
#include "attributes.h"
#include "requests.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

/* ---- listing ------------------------------------------------------------------------------- */

struct nlmsghdr *rule_list_request(struct netlink_request *request)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), RTM_GETRULE);

    mnl_nlmsg_put_extra_header(message, sizeof(struct fib_rule_hdr));
    return message;
}

static void parse_attribute(const struct nlattr *attribute, struct netlink_rule *rule)
{
    switch (mnl_attr_get_type(attribute)) {
    case FRA_PRIORITY:
        rule->priority = attribute_u32(attribute);
        break;
    case FRA_TABLE:
        rule->table = attribute_u32(attribute);
        break;
    case FRA_FWMARK:
        rule->mark = attribute_u32(attribute);
        break;
    case FRA_FWMASK:
        rule->mask = attribute_u32(attribute);
        rule->has_mark = rule->mask != 0;
        break;
    case FRA_SUPPRESS_PREFIXLEN:
        rule->suppress_prefix_length = attribute_u32(attribute);
        break;
    case FRA_PROTOCOL:
        rule->protocol = attribute_u8(attribute);
        break;
    case FRA_SUPPRESS_IFGROUP:
        /* -1: none. It is always told. */
        if (attribute_u32(attribute) != UINT32_MAX)
            rule->plain = false;
        break;
    case FRA_SRC:
    case FRA_DST:
    case FRA_IIFNAME:
    case FRA_OIFNAME:
    case FRA_GOTO:
    case FRA_FLOW:
    case FRA_TUN_ID:
    case FRA_L3MDEV:
    case FRA_UID_RANGE:
    case FRA_IP_PROTO:
    case FRA_SPORT_RANGE:
    case FRA_DPORT_RANGE:
        rule->plain = false;
        break;
    default: /* padding, and what a newer kernel may know */
        break;
    }
}

bool rule_parse(const struct nlmsghdr *message, struct netlink_rule *rule)
{
    const struct fib_rule_hdr *header = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;

    if ((message->nlmsg_type != RTM_NEWRULE && message->nlmsg_type != RTM_DELRULE) ||
        mnl_nlmsg_get_payload_len(message) < sizeof(*header))
        return false;
    *rule = (struct netlink_rule){
        .family = family_from_kernel(header->family),
        .inverted = (header->flags & FIB_RULE_INVERT) != 0,
        .plain = header->action == FR_ACT_TO_TBL && header->src_len == 0 && header->dst_len == 0 &&
                 header->tos == 0,
        .table = header->table,
        .suppress_prefix_length = NETLINK_NO_SUPPRESSION,
    };
    mnl_attr_for_each(attribute, message, sizeof(*header))
    {
        parse_attribute(attribute, rule);
    }
    /* Without a mask the kernel compares the whole mark, if there is one. */
    if (rule->mark != 0 && rule->mask == 0) {
        rule->has_mark = true;
        rule->mask = UINT32_MAX;
    }
    return rule->family != 0;
}

static int take_listed(const struct nlmsghdr *message, void *context)
{
    struct netlink_rules *rules = context;
    struct netlink_rule rule;

    if (!rule_parse(message, &rule))
        return 0;
    struct netlink_rule *items = netlink_grow(rules->items, rules->count, sizeof(rule));
    if (items == NULL)
        return -ENOMEM;
    rules->items = items;
    items[rules->count++] = rule;
    return 0;
}

static void restart_list(void *context)
{
    netlink_rules_free(context);
}

int netlink_rule_list(struct netlink *handle, struct netlink_rules *rules)
{
    struct netlink_request request;

    *rules = (struct netlink_rules){0};
    int result =
        netlink_dump(handle, rule_list_request(&request), take_listed, restart_list, rules);
    if (result != 0)
        netlink_rules_free(rules);
    return result;
}

void netlink_rules_free(struct netlink_rules *rules)
{
    free(rules->items);
    *rules = (struct netlink_rules){0};
}

/* ---- changing ------------------------------------------------------------------------------ */

struct nlmsghdr *rule_request(struct netlink_request *request, uint16_t type,
                              const struct netlink_rule *rule)
{
    struct nlmsghdr *message = netlink_begin(request->bytes, sizeof(request->bytes), type);
    struct fib_rule_hdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

    header->family = family_to_kernel(rule->family);
    /* The header has eight bits for a table; FRA_TABLE counts. */
    header->table = rule->table < 256 ? (uint8_t)rule->table : RT_TABLE_UNSPEC;
    header->action = FR_ACT_TO_TBL;
    header->flags = rule->inverted ? FIB_RULE_INVERT : 0;
    mnl_attr_put_u32(message, FRA_PRIORITY, rule->priority);
    if (rule->has_mark) {
        mnl_attr_put_u32(message, FRA_FWMARK, rule->mark);
        mnl_attr_put_u32(message, FRA_FWMASK, rule->mask);
    }
    mnl_attr_put_u32(message, FRA_TABLE, rule->table);
    if (rule->suppress_prefix_length != NETLINK_NO_SUPPRESSION)
        mnl_attr_put_u32(message, FRA_SUPPRESS_PREFIXLEN, rule->suppress_prefix_length);
    mnl_attr_put_u8(message, FRA_PROTOCOL, NETLINK_OWN_PROTOCOL);
    return message;
}

static bool rule_is_valid(const struct netlink_rule *rule)
{
    return (rule->family == 4 || rule->family == 6) && rule->table != 0;
}

int netlink_rule_add(struct netlink *handle, const struct netlink_rule *rule)
{
    struct netlink_request request;

    if (!rule_is_valid(rule))
        return -EINVAL;
    return netlink_transact(handle, rule_request(&request, RTM_NEWRULE, rule),
                            NLM_F_CREATE | NLM_F_EXCL, NULL, NULL);
}

int netlink_rule_remove(struct netlink *handle, const struct netlink_rule *rule)
{
    struct netlink_request request;

    if (!rule_is_valid(rule))
        return -EINVAL;
    return netlink_transact(handle, rule_request(&request, RTM_DELRULE, rule), 0, NULL, NULL);
}
