// libsqlite3, with wrappers for functions and macros that Swift cannot call.
#include <sqlite3.h>

/// Sets whether changes of `sqlite_schema` and other ways to damage a file are refused. Wraps
/// `sqlite3_db_config`, which is variadic.
static inline int csqlite_defend(sqlite3 *connection, int defends) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, defends, (void *)0);
}

/// Disables views, unsafe functions in a schema, changes of it, and string literals in double
/// quotes, which would hide a misspelt column name.
static inline int csqlite_distrust_schema(sqlite3 *connection) {
    const int options[] = {
        SQLITE_DBCONFIG_DQS_DDL, SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_ENABLE_VIEW,
        SQLITE_DBCONFIG_TRUSTED_SCHEMA};
    for (int index = 0; index < 4; index++) {
        int code = sqlite3_db_config(connection, options[index], 0, (void *)0);
        if (code != SQLITE_OK) return code;
    }
    return csqlite_defend(connection, 1);
}

/// Sets whether closing the last connection leaves the log as it is. Wraps a variadic function.
static inline int csqlite_keep_log_at_close(sqlite3 *connection, int keeps) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps, (void *)0);
}

/// Enables triggers and foreign keys, also inside a transaction, where `PRAGMA foreign_keys` has no
/// effect. Wraps a variadic function.
static inline int csqlite_enable_triggers(sqlite3 *connection, int enables) {
    int code = sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enables, (void *)0);
    if (code != SQLITE_OK) return code;
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_FKEY, enables, (void *)0);
}

/// Disables SQLite's memory statistics, for which each allocation takes a global lock; they are not
/// used. Call before opening a connection. Wraps `sqlite3_config`, which is variadic.
static inline int csqlite_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

/// Binds a copy of the bytes: `SQLITE_TRANSIENT` is a cast that Swift does not import. An empty
/// Swift string may have no address, which would bind NULL.
static inline int csqlite_bind_text(
    sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text ? text : "", count, SQLITE_TRANSIENT);
}

/// Binds a copy of the bytes as a BLOB.
static inline int csqlite_bind_blob(
    sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}

/// Binds the value of another statement's column without a copy: `SQLITE_STATIC` is a cast, too.
static inline int csqlite_bind_shared(
    sqlite3_stmt *statement, int index, sqlite3_stmt *other, int column) {
    switch (sqlite3_column_type(other, column)) {
    case SQLITE_INTEGER:
        return sqlite3_bind_int64(statement, index, sqlite3_column_int64(other, column));
    case SQLITE_FLOAT:
        return sqlite3_bind_double(statement, index, sqlite3_column_double(other, column));
    case SQLITE_TEXT: {
        // The bytes as they are; a text would get a NUL and may move.
        const void *text = sqlite3_column_blob(other, column);
        return sqlite3_bind_text(
            statement, index, text ? text : "", sqlite3_column_bytes(other, column),
            SQLITE_STATIC);
    }
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(other, column);
        return sqlite3_bind_blob(
            statement, index, bytes ? bytes : "", sqlite3_column_bytes(other, column),
            SQLITE_STATIC);
    }
    default: return sqlite3_bind_null(statement, index);
    }
}
