// Runs collectives between the ranks of a distributed program: collectives/group.hpp in C.
//
//   trainyard_group* group;
//   char message[TRAINYARD_ERROR_BYTES];
//   trainyard_join join = {.size = sizeof join, .rank = 0, .ranks = 2, .rendezvous = "algo-1:7829", .secret = "s"};
//   if (trainyard_group_join(&join, &group, message) != TRAINYARD_OK) ...
//   trainyard_call call = {.size = sizeof call, .operation = TRAINYARD_ALLREDUCE, .type = TRAINYARD_F32,
//                          .input = gradients, .output = gradients, .input_count = n, .output_count = n};
//   if (trainyard_group_run(group, &call, message) != TRAINYARD_OK) ...
//
// Library: libtrainyard_collectives.so.1. A program first compares trainyard_collectives_abi() with
// TRAINYARD_COLLECTIVES_ABI, the number of all headers of this folder; structs begin with their
// size, so that they can grow.
// Threads: call from any thread; a group runs one call at a time, in order.
// Errors:  functions return a kind, and write a text of at most TRAINYARD_ERROR_BYTES, with its
//          final zero, to `message`, which may be null.
// Units:   counts are elements, durations are milliseconds.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRAINYARD_COLLECTIVES_ABI 1
#define TRAINYARD_ERROR_BYTES 1024
#define TRAINYARD_PUBLIC __attribute__((visibility("default")))

typedef struct trainyard_group trainyard_group;
typedef struct trainyard_handle trainyard_handle;

typedef enum {
  TRAINYARD_OK = 0,
  TRAINYARD_INVALID,
  TRAINYARD_DENIED,
  TRAINYARD_NOT_FOUND,
  TRAINYARD_CONFLICT,
  TRAINYARD_EXHAUSTED,
  TRAINYARD_UNAVAILABLE,
  TRAINYARD_CANCELLED,
  TRAINYARD_CORRUPT,
  TRAINYARD_INTERNAL
} trainyard_kind;

typedef enum {
  TRAINYARD_ALLREDUCE = 0,
  TRAINYARD_REDUCE_SCATTER,
  TRAINYARD_ALL_GATHER,
  TRAINYARD_BROADCAST,
  TRAINYARD_REDUCE,
  TRAINYARD_GATHER,
  TRAINYARD_SCATTER,
  TRAINYARD_ALL_TO_ALL,
  TRAINYARD_BARRIER
} trainyard_operation;

typedef enum {
  TRAINYARD_F64 = 0,
  TRAINYARD_F32,
  TRAINYARD_F16,
  TRAINYARD_BF16,
  TRAINYARD_F8E4M3,
  TRAINYARD_F8E5M2,
  TRAINYARD_I64,
  TRAINYARD_I32,
  TRAINYARD_I16,
  TRAINYARD_I8,
  TRAINYARD_U8,
  TRAINYARD_BOOL
} trainyard_type;

typedef enum {
  TRAINYARD_SUM = 0,
  TRAINYARD_AVERAGE,
  TRAINYARD_MINIMUM,
  TRAINYARD_MAXIMUM,
  TRAINYARD_PRODUCT,
  TRAINYARD_BITS_AND,  // bitwise reductions: integers and booleans only
  TRAINYARD_BITS_OR,
  TRAINYARD_BITS_XOR
} trainyard_reduction;

typedef struct {
  size_t size;  // sizeof this struct
  int rank;
  int ranks;
  // By rank: names or addresses. Null: the ranks find each other at `rendezvous`.
  const char* const* hosts;
  const uint16_t* ports;     // by rank
  const char* secret;        // secret of the group; may be null
  int64_t join_deadline_ms;  // 0: the default of the library
  int64_t peer_timeout_ms;   // 0: the default of the library
  int deterministic;
  const char* plans;     // may be null
  int encrypt;           // 1: TLS between ranks that share no memory, with the secret as its key
  int sockets_per_peer;  // for large messages; 0: one
  int timeline;          // 1: record operations for trainyard_group_timeline
  // Equal on all ranks: HOST:PORT at which rank 0 listens, or the absolute path of a folder that
  // all ranks see and no other run uses. The hosts of the ranks are then determined. Null with
  // `hosts`, or for a single rank.
  const char* rendezvous;
  // 1: the launcher (torchrun, mpirun, SageMaker, TRAINYARD_RANK ..) sets rank, ranks and
  // rendezvous, and these members if they are null or 0: secret, encrypt, sockets_per_peer, plans,
  // deterministic. collectives/launch.hpp lists the environment variables.
  int from_launcher;
} trainyard_join;

// One operation, with its buffers on this rank. Without `counts`, all blocks are equal or as even
// as possible:
//
//   operation        input                        output                     counts: elements ..
//   ALLREDUCE        count                        count; may be the input    -
//   REDUCE_SCATTER   all blocks                   our block of the sum       of each rank's block
//   ALL_GATHER       our block                    all blocks by rank         of each rank's block
//   BROADCAST        -                            the root's goes to all     -
//   REDUCE           count                        count, on the root         -
//   GATHER           our block                    all blocks, on the root    of each rank's block
//   SCATTER          all blocks, on the root      our block                  of each rank's block
//   ALL_TO_ALL       a block for each rank        a block of each rank       for each; received_counts: of each
//   BARRIER          -                            -                          -
typedef struct {
  size_t size;  // sizeof this struct
  trainyard_operation operation;
  trainyard_type type;
  const void* input;
  void* output;
  size_t input_count;
  size_t output_count;
  trainyard_reduction reduction;
  double prescale;  // 0 is 1
  int root;
  const size_t* counts;           // by rank, or null
  const size_t* received_counts;  // by rank, or null
  const char* name;               // for logs and timelines, or null
} trainyard_call;

// Returns the TRAINYARD_COLLECTIVES_ABI of the library.
TRAINYARD_PUBLIC int trainyard_collectives_abi(void);

TRAINYARD_PUBLIC trainyard_kind trainyard_group_join(const trainyard_join* join,
                                                     trainyard_group** group, char* message);
TRAINYARD_PUBLIC void trainyard_group_free(trainyard_group* group);
TRAINYARD_PUBLIC int trainyard_group_rank(const trainyard_group* group);
TRAINYARD_PUBLIC int trainyard_group_size(const trainyard_group* group);
// Returns a number that two ranks share exactly when they share memory; -1 for an unknown rank.
TRAINYARD_PUBLIC int trainyard_group_host(const trainyard_group* group, int rank);

TRAINYARD_PUBLIC trainyard_kind trainyard_group_run(trainyard_group* group,
                                                    const trainyard_call* call, char* message);
// Starts a call. Its buffers and counts must live until trainyard_handle_wait() has returned, which
// frees the handle.
TRAINYARD_PUBLIC trainyard_kind trainyard_group_start(trainyard_group* group,
                                                      const trainyard_call* call,
                                                      trainyard_handle** handle, char* message);
TRAINYARD_PUBLIC int trainyard_handle_done(const trainyard_handle* handle);
TRAINYARD_PUBLIC trainyard_kind trainyard_handle_wait(trainyard_handle* handle, char* message);

// Send and receive between two ranks, independently of the others. `count` is bytes, equal on both.
TRAINYARD_PUBLIC trainyard_kind trainyard_group_send(trainyard_group* group, int peer,
                                                     const void* bytes, size_t count,
                                                     char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_group_receive(trainyard_group* group, int peer,
                                                        void* bytes, size_t count, char* message);
// Start a send or receive. The bytes must live until trainyard_handle_wait() has returned.
TRAINYARD_PUBLIC trainyard_kind trainyard_group_start_send(trainyard_group* group, int peer,
                                                           const void* bytes, size_t count,
                                                           trainyard_handle** handle,
                                                           char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_group_start_receive(trainyard_group* group, int peer,
                                                              void* bytes, size_t count,
                                                              trainyard_handle** handle,
                                                              char* message);
// Splits a group into one group for each color, in the order of ranks; all ranks call it. *part is
// null for a negative color; otherwise free it with trainyard_group_free. A part has the options of
// its group.
TRAINYARD_PUBLIC trainyard_kind trainyard_group_split(trainyard_group* group, int color,
                                                      trainyard_group** part, char* message);

// Allocates memory that ranks of the same machine read without a copy. Free it before the group.
// Returns TRAINYARD_UNAVAILABLE if memory cannot be shared: use ordinary memory then.
TRAINYARD_PUBLIC trainyard_kind trainyard_group_allocate(trainyard_group* group, size_t bytes,
                                                         void** memory, char* message);
TRAINYARD_PUBLIC void trainyard_group_free_memory(trainyard_group* group, void* memory);

// Return a text that the caller frees with trainyard_text_free: the table of plans; the timeline as
// JSON; the operations in progress ("" for none).
TRAINYARD_PUBLIC char* trainyard_group_table(const trainyard_group* group);
TRAINYARD_PUBLIC char* trainyard_group_timeline(const trainyard_group* group);
TRAINYARD_PUBLIC char* trainyard_group_under_way(const trainyard_group* group);
TRAINYARD_PUBLIC void trainyard_text_free(char* text);

#ifdef __cplusplus
}
#endif
