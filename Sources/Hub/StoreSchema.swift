// SPDX-License-Identifier: Apache-2.0

/// The form of the hub's database, step by step; a released step is never changed.
enum StoreSchema {
    static let steps = [
        """
        CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
        CREATE TABLE devices (
          id TEXT PRIMARY KEY,
          hwid TEXT NOT NULL,
          name TEXT NOT NULL,
          platform TEXT NOT NULL,
          agent_version TEXT NOT NULL,
          public_key TEXT NOT NULL,
          other_key TEXT, rotation_phase TEXT, rotation_since INTEGER, rotation_received INTEGER,
          addresses TEXT NOT NULL,
          networks TEXT NOT NULL,
          routes TEXT,
          token_id TEXT NOT NULL,
          created INTEGER NOT NULL,
          provisioned INTEGER NOT NULL,
          confirmed INTEGER,
          revoked INTEGER,
          sealed_key BLOB,
          command TEXT
        ) STRICT;
        CREATE TABLE live (
          device_id TEXT PRIMARY KEY REFERENCES devices(id) ON DELETE CASCADE,
          seen INTEGER NOT NULL,
          state TEXT NOT NULL,
          backend TEXT NOT NULL,
          tunnel_up INTEGER NOT NULL,
          handshake INTEGER,
          received INTEGER NOT NULL,
          sent INTEGER NOT NULL,
          problems TEXT NOT NULL
        ) STRICT;
        CREATE TABLE tokens (
          id TEXT PRIMARY KEY,
          digest TEXT NOT NULL UNIQUE,
          label TEXT NOT NULL,
          created INTEGER NOT NULL,
          expires INTEGER,
          maximum_uses INTEGER,
          uses INTEGER NOT NULL,
          device_id TEXT,
          revoked INTEGER
        ) STRICT;
        CREATE TABLE credentials (
          digest TEXT PRIMARY KEY,
          device_id TEXT NOT NULL REFERENCES devices(id) ON DELETE CASCADE,
          created INTEGER NOT NULL,
          expires INTEGER
        ) STRICT;
        CREATE INDEX credentials_of_device ON credentials(device_id);
        CREATE TABLE forwards (
          id TEXT PRIMARY KEY,
          device_id TEXT NOT NULL REFERENCES devices(id) ON DELETE CASCADE,
          transport TEXT NOT NULL,
          port INTEGER NOT NULL,
          port_end INTEGER NOT NULL,
          target TEXT NOT NULL,
          target_port INTEGER NOT NULL,
          description TEXT NOT NULL,
          keeps_source INTEGER NOT NULL,
          is_enabled INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX forwards_of_device ON forwards(device_id);
        CREATE TABLE quarantine (address TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
        CREATE TABLE alarms (
          id INTEGER PRIMARY KEY,
          device_id TEXT,
          kind TEXT NOT NULL,
          text TEXT NOT NULL,
          raised INTEGER NOT NULL,
          cleared INTEGER,
          acknowledged INTEGER
        ) STRICT;
        CREATE TABLE accounts (
          name TEXT PRIMARY KEY, password_hash TEXT NOT NULL, created INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE log (
          id INTEGER PRIMARY KEY,
          time INTEGER NOT NULL,
          level TEXT NOT NULL,
          tag TEXT NOT NULL,
          message TEXT NOT NULL,
          device_id TEXT,
          actor TEXT NOT NULL
        ) STRICT;
        CREATE INDEX log_of_device ON log(device_id, id);
        """,
        "ALTER TABLE devices ADD COLUMN sealed_psk BLOB;",
    ]
}
