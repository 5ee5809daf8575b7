// libsqlite3, and what Swift cannot call of it.
#include <sqlite3.h>

/// `sqlite3_db_config` is variadic. Has names in double quotes never taken for strings, in which a
/// misspelt column would go unnoticed.
static inline int csqlite_refuse_double_quoted_strings(sqlite3 *connection) {
    int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, (void *)0);
    if (code != SQLITE_OK) return code;
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, (void *)0);
}

/// The same. Whether the last connection leaves the log as it is when it is closed.
static inline int csqlite_keep_log_at_close(sqlite3 *connection, int keeps) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps, (void *)0);
}

/// The same. Whether triggers and foreign keys act, within a transaction, too, where `PRAGMA foreign_keys` has no effect.
static inline int csqlite_enable_triggers(sqlite3 *connection, int enables) {
    int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enables, (void *)0);
    if (code != SQLITE_OK) return code;
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_FKEY, enables, (void *)0);
}

/// `sqlite3_config` is variadic. Turns off SQLite's memory statistics, for which each allocation takes a lock that all
/// threads share; nothing here asks for them. To be called before the first connection is opened.
static inline int csqlite_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Has SQLite copy the bytes: `SQLITE_TRANSIENT` is a cast that Swift does not import. An empty text
/// of Swift's may have no address, which would bind NULL.
static inline int csqlite_bind_text(
    sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text ? text : "", count, SQLITE_TRANSIENT);
}

/// The same for bytes.
static inline int csqlite_bind_blob(
    sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}
