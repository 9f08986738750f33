#ifndef CONN_H
#define CONN_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define CONN_API __attribute__((visibility("default")))
#define CONN_CALL
typedef struct conn_impl *conn_t;              /* opaque handle */
typedef void *conn_cookie;                     /* handle without a type */
typedef int (CONN_CALL *conn_callback)(conn_t c, const char *line, void *arg);
typedef enum { CONN_OK = 0, CONN_EMPTY = 1, CONN_BAD = -1 } conn_status;
typedef struct conn_options { unsigned depth; conn_callback on_line; void *arg; } conn_options;
CONN_API conn_status CONN_CALL conn_open(conn_t *out, const conn_options *options);
CONN_API conn_status CONN_CALL conn_write(conn_t c, const void *data, size_t len);
CONN_API conn_status CONN_CALL conn_read(conn_t c, char *buf, size_t room, size_t *got);
CONN_API int CONN_CALL (conn_pending)(conn_t c);
#define conn_pending(c) ((c) ? (conn_pending)(c) : 0)
CONN_API conn_cookie conn_watch(conn_t c, conn_callback cb, void *arg);
CONN_API void conn_unwatch(conn_t c, conn_cookie w);
CONN_API void conn_close(conn_t c);
CONN_API const char *conn_error(conn_status s);
#ifdef __cplusplus
}
#endif
#endif
