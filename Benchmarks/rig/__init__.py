# SPDX-License-Identifier: Apache-2.0
"""The benchmark rig: two network namespaces, a tunnel between them, and loads over it."""
