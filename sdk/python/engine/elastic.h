/* Ranks that come and go, for the Python of horovod: the service that horovodrun has, and the
 * member that each rank is.
 *
 * Threads: a service and a member from one thread at a time, member_changed from anywhere.
 * Errors:  as in engine.h: -1 or null, and engine_error() has the words.
 */
#ifndef TRAINYARD_SDK_ELASTIC_H
#define TRAINYARD_SDK_ELASTIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct engine_service engine_service;
/* host: where to listen, port 0 a free one. settle_ms and generations_max as in
 * membership/membership.hpp. */
engine_service* service_start(const char* host, int32_t port, const char* secret, int32_t ranks_min,
                              int32_t ranks_max, int64_t settle_ms, int32_t generations_max);
void service_stop(engine_service* service);
int32_t service_port(const engine_service* service);
void service_expect(engine_service* service, const char* name);
void service_gone(engine_service* service, const char* name,
                  const char* why); /* why empty: it is done */
void service_host(engine_service* service, const char* host, int32_t leaves); /* or returns */
/* What happened: 0 nothing within at_most_ms, else the kind (News::Kind + 1). The texts live until
 * the next call. */
int32_t service_next(engine_service* service, int64_t at_most_ms, const char** name,
                     const char** words, uint64_t* generation, int32_t* ranks);
const char* service_missing(engine_service* service);

typedef struct engine_member engine_member;
typedef struct {
  uint64_t generation;
  int32_t rank, ranks, local_rank, local_ranks;
} engine_seat;
engine_member* member_connect(const char* host, int32_t port, const char* secret, const char* name,
                              const char* own_host, int32_t wanted_rank);
void member_leave(engine_member* member);
/* Waits until ranks are given out. -1: no more for us. */
int32_t member_next(engine_member* member, const char* complaint, int64_t at_most_ms,
                    engine_seat* slot);
/* Bit 0: someone waits to be let in; bit 1: someone is to leave. */
int32_t member_changed(engine_member* member);
void member_done(engine_member* member);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
