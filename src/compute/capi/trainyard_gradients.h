// Runs collectives on tensors that have names, which ranks submit in any order:
// gradients/fusion/negotiator.hpp in C. Memory is passed by its address, so the functions can be
// used with every framework.
//
//   trainyard_negotiator_options options = {.size = sizeof options, .fusion_bytes = 128 << 20,
//                                           .cycle_us = 1000, .cache_entries = 1024};
//   trainyard_negotiator_start(group, &options, &negotiator, message);  // takes over the group
//   trainyard_request request = {.size = sizeof request, .name = "layer1.weight",
//                                .operation = TRAINYARD_NAMED_ALLREDUCE, .type = TRAINYARD_F32,
//                                .input = gradients, .output = gradients, .input_count = n,
//                                .output_count = n, .prescale = 1, .postscale = 1};
//   trainyard_negotiator_submit(negotiator, &request, 1, &number, message);
//   trainyard_negotiator_wait(negotiator, number, message);
//   trainyard_negotiator_forget(negotiator, number);
//   trainyard_negotiator_free(negotiator);
//
// Library, errors, units: as trainyard_collectives.h. Threads: call from any thread; no call may
// follow trainyard_negotiator_free().
#pragma once

#include "capi/trainyard_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trainyard_negotiator trainyard_negotiator;

typedef enum {
  TRAINYARD_NAMED_ALLREDUCE = 0,
  TRAINYARD_NAMED_ADASUM,
  TRAINYARD_NAMED_ALL_GATHER,
  TRAINYARD_NAMED_BROADCAST,
  TRAINYARD_NAMED_REDUCE_SCATTER,
  TRAINYARD_NAMED_ALL_TO_ALL,
  TRAINYARD_NAMED_BARRIER
} trainyard_named_operation;

typedef enum {
  TRAINYARD_UNCOMPRESSED = 0,
  TRAINYARD_COMPRESSED_F16,
  TRAINYARD_COMPRESSED_BF16,
  TRAINYARD_COMPRESSED_INT8,
  TRAINYARD_COMPRESSED_LOW_RANK
} trainyard_compression;

// The options of rank 0 apply to all ranks. 0 is a value, not a default.
typedef struct {
  size_t size;  // sizeof this struct
  uint64_t fusion_bytes;
  uint32_t cycle_us;        // microseconds between two negotiations
  uint32_t cache_entries;   // tensors whose signatures are stored
  int64_t stall_report_ms;  // 0: never
  int64_t stall_fail_ms;    // 0: never
  int reproducible;         // 1: fuse groups only, so that every run adds in the same order
  int autotune;
  const char* autotune_log;  // the file to which rank 0 appends a line for each try; null: none
} trainyard_negotiator_options;

// All members except the memory are compared between ranks.
typedef struct {
  size_t size;  // sizeof this struct
  const char* name;
  trainyard_named_operation operation;
  trainyard_type type;
  trainyard_reduction reduction;
  int root;      // broadcast: a rank of the whole group
  int set;       // 0: all ranks; else a set of trainyard_negotiator_add_set
  int priority;  // larger ones come first
  trainyard_compression compression;
  uint32_t compression_rank;  // TRAINYARD_COMPRESSED_LOW_RANK: columns of the thin matrices
  const void* input;
  void* output;  // null: the negotiator allocates it, see trainyard_negotiator_copy_output
  size_t input_count;
  size_t output_count;
  const uint64_t* shape;
  size_t dimensions;
  const uint64_t* splits;  // all_to_all: rows for each rank of the set; null: as even as possible
  size_t splits_count;
  double prescale;   // values are multiplied by this before they are reduced; 1 for no change
  double postscale;  // values are multiplied by this afterwards
} trainyard_request;

// Starts a negotiator over the group; all ranks call it. The negotiator then owns the group, also
// if this call fails: the caller must no longer use or free it.
TRAINYARD_PUBLIC trainyard_kind
trainyard_negotiator_start(trainyard_group* group, const trainyard_negotiator_options* options,
                           trainyard_negotiator** negotiator, char* message);
// Ends the negotiator: requests that are outstanding on any rank fail.
TRAINYARD_PUBLIC void trainyard_negotiator_free(trainyard_negotiator* negotiator);

// Submits one request, or several that complete together; never waits. numbers[i], above 0,
// identifies requests[i] until trainyard_negotiator_forget. The memory of a request must live until
// it is done. After an error no request is submitted. Errors: invalid, for an invalid request;
// conflict, if its name is outstanding; exhausted, if too many requests were not forgotten.
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_submit(trainyard_negotiator* negotiator,
                                                            const trainyard_request* requests,
                                                            size_t count, int64_t* numbers,
                                                            char* message);
// Reports that this rank has no more data, as hvd.join does. Returns the number of the request,
// which is done when all ranks of the set have joined.
TRAINYARD_PUBLIC int64_t trainyard_negotiator_join(trainyard_negotiator* negotiator, int set);

// Returns 1 if trainyard_negotiator_wait would not wait.
TRAINYARD_PUBLIC int trainyard_negotiator_done(trainyard_negotiator* negotiator, int64_t number);
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_wait(trainyard_negotiator* negotiator,
                                                          int64_t number, char* message);
TRAINYARD_PUBLIC void trainyard_negotiator_forget(trainyard_negotiator* negotiator, int64_t number);

// The next functions read a request for which trainyard_negotiator_wait returned TRAINYARD_OK.
// Returns the rank that joined last, after trainyard_negotiator_join; else -1.
TRAINYARD_PUBLIC int trainyard_negotiator_last_rank(trainyard_negotiator* negotiator,
                                                    int64_t number);
// Copies at most rows_max numbers of rows. all_gather: rows of each rank's block; all_to_all: rows
// received from each rank; reduce_scatter: rows of each rank. Returns how many numbers there are.
TRAINYARD_PUBLIC size_t trainyard_negotiator_rows(trainyard_negotiator* negotiator, int64_t number,
                                                  uint64_t* rows, size_t rows_max);
// Copies the first bytes of an output that the negotiator allocated.
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_copy_output(trainyard_negotiator* negotiator,
                                                                 int64_t number, void* memory,
                                                                 size_t bytes, char* message);

// Add or remove a set, which is a group of some of the ranks. All ranks call both functions, with
// equal arguments, and wait in them.
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_add_set(trainyard_negotiator* negotiator,
                                                             const int* ranks, size_t count,
                                                             int* set, char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_remove_set(trainyard_negotiator* negotiator,
                                                                int set, char* message);

// Writes the events of this rank from now on to a file, in the trace event format of
// chrome://tracing and Perfetto.
TRAINYARD_PUBLIC trainyard_kind trainyard_negotiator_start_timeline(
    trainyard_negotiator* negotiator, const char* path, int mark_cycles, char* message);
TRAINYARD_PUBLIC void trainyard_negotiator_stop_timeline(trainyard_negotiator* negotiator);

#ifdef __cplusplus
}
#endif
