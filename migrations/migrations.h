/* migrations/migrations.h - the schema's steps, embedded at build time from NNNN_name.sql in this folder. */
#ifndef QUEUED_MIGRATIONS_H
#define QUEUED_MIGRATIONS_H

#include <stddef.h>

struct migration {
    int version;      /* the NNNN of the file's name; the user_version of a database after it */
    const char *name; /* of the file, without folder */
    const char *sql;
};

extern const struct migration migrations[]; /* ascending, without gaps, from 1 */
extern const size_t n_migrations;

#endif
