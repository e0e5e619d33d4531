// SPDX-License-Identifier: Apache-2.0
import HostProcess

Host.exit(Program.main())
