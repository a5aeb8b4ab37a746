/* One operation without a writer: for operator commands when no server runs. */
#include "db/burst.h"
#include "db/migrate.h"
#include "db/writer.h"

enum db_result db_writer_once(const struct db_config *config, struct db_op *op,
                              struct db_error *error)
{
    struct db_conn c = {0};
    uint64_t commit_us;
    enum db_result result = db_conn_open(&c, config->path, DB_CREATE, config->write_cache_bytes,
                                         error);
    if (result == DB_OK)
        result = db_migrate(&c, error);
    if (result == DB_OK) {
        op->next = NULL;
        result = db_burst_run(&c, op, &commit_us);
        db_set_error(error, "%s", db_result_text(op->result));
        if (result == DB_OK)
            result = op->result;
    }
    db_conn_close(&c);
    return result;
}
