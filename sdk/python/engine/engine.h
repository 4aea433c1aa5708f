/* What the Python of `horovod` calls, through ctypes: a group of ranks with a negotiator over it.
 * It knows memory by its address and neither Python nor any framework, so one library serves every
 * torch and TensorFlow, and every version.
 *
 * Threads: call from anywhere, but engine_leave() last. Errors: a function that fails gives -1 or
 * null, and engine_error()
 *          says why, in words, until the thread's next call. Texts live until then too.
 * Units:   _ms milliseconds, _us microseconds, counts in elements or rows as said.
 */
#ifndef TRAINYARD_SDK_ENGINE_H
#define TRAINYARD_SDK_ENGINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Larger whenever anything below changes: the Python beside it asks first. */
#define TRAINYARD_ENGINE_VERSION 5
int32_t engine_version(void);
const char* engine_error(void);

/* How this process was launched: collectives/launch.hpp, with the ports of horovod. */
typedef struct {
  int32_t rank, ranks;
  int32_t local_rank, local_ranks; /* -1: unknown */
  const char*
      meeting_host; /* one of the three, where there is more than one rank; the others are empty */
  int32_t meeting_port;
  const char* folder;
  const char* service_host; /* of horovodrun */
  int32_t service_port;
  int32_t elastic; /* the service gives rank and ranks, too */
  const char* secret;
  const char* told_by;
} engine_launch;
/* variables: NAME=VALUE each, and null at the end. hosts: of resourceconfig.json, and null at the
 * end; null without that file. 0, or -1. The texts live until the thread's next call of this
 * function. */
int32_t engine_read_launch(const char* const* variables, const char* const* hosts,
                           int32_t current_host, engine_launch* launch);

typedef struct {
  int32_t rank, ranks;
  const char* meeting_host; /* one of the three, where there is more than one rank */
  int32_t meeting_port;
  const char* folder;
  void* member; /* elastic.h: of the generation that it was last given, which also says rank and
                   ranks */
  const char* secret;
  int32_t encrypt, sockets_per_peer; /* between hosts, as in group.hpp; the same on all ranks */
  int64_t join_ms, silence_ms;
  const char* plans;
  int32_t deterministic;
  const char* said; /* told to all ranks, see engine_heard */
  uint64_t fusion_bytes;
  uint32_t cycle_us, cache_entries;
  int64_t stall_report_ms, stall_fail_ms; /* 0: never */
  int32_t reproducible, autotune;
  const char* autotune_log; /* a file for rank 0's tries, a line each; empty: none */
} engine_options;

typedef struct engine engine;
engine* engine_join(const engine_options* options);
/* On all ranks: what is outstanding fails everywhere. */
void engine_leave(engine* engine);
int32_t engine_rank(const engine* engine);
int32_t engine_ranks(const engine* engine);
/* A number that ranks share exactly when they share memory. */
int32_t engine_host_of(const engine* engine, int32_t rank);
/* What that rank said when it joined. */
const char* engine_heard(const engine* engine, int32_t rank);

typedef struct {
  const char* name;
  int32_t operation, type, reduction; /* as numbered in fusion/request.hpp and types.hpp */
  int32_t root, set, priority;
  int32_t compression,
      compression_rank; /* as in compression.hpp; of the name, which remembers what is lost */
  const void* input;
  void* output; /* null: the engine keeps the output until engine_take or engine_forget */
  uint64_t input_count, output_count;
  int32_t dimensions, splits_count;
  const uint64_t* shape;
  const uint64_t* splits;
  double prescale, postscale;
} engine_request;

/* `count` requests that complete together, or one. Never waits. A handle, above 0, for each. The
 * memory must live until the handle was waited for. 1: none is submitted, since one cannot be or
 * its name is under way; -1: none, for another reason. */
int32_t engine_submit(engine* engine, const engine_request* requests, int32_t count,
                      int64_t* handles);
int64_t engine_join_ranks(engine* engine, int32_t set); /* hvd.join: a handle */
int32_t engine_done(engine* engine, int64_t handle);
/* 0, or the kind of error (Kind + 1) with its words in engine_error(). */
int32_t engine_wait(engine* engine, int64_t handle);
/* Of a handle that was waited for without an error. */
int32_t engine_last(engine* engine, int64_t handle);
int32_t engine_rows(engine* engine, int64_t handle, uint64_t* rows,
                    int32_t rows_max); /* how many there are */
uint64_t engine_kept_bytes(engine* engine, int64_t handle);
int32_t engine_take(engine* engine, int64_t handle, void* memory,
                    uint64_t bytes); /* copies what is kept */
void engine_forget(engine* engine, int64_t handle);

/* All ranks call both. */
int32_t engine_add_set(engine* engine, const int32_t* ranks, int32_t count);
int32_t engine_remove_set(engine* engine, int32_t set);

/* A file in the trace event format (chrome://tracing, Perfetto) with what this rank does from now
 * on. */
int32_t engine_timeline_start(engine* engine, const char* path, int32_t mark_cycles);
int32_t engine_timeline_stop(engine* engine);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
