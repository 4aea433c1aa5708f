// Reads how this process was launched: collectives/launch.hpp in C, which lists the environment
// variables of each launcher.
//
//   trainyard_launch* launch;
//   if (trainyard_launch_read(NULL, &launch, message) != TRAINYARD_OK) ...
//   printf("rank %d of %d, according to %s\n", launch->rank, launch->ranks, launch->launcher);
//   trainyard_launch_free(launch);
//
// With trainyard_join.from_launcher, trainyard_group_join does the same, and joins.
//
// Library, errors: as trainyard_collectives.h. Threads: call from any thread, but not while another
// thread sets environment variables. Texts are never null, and live until the launch is freed.
#pragma once

#include "capi/trainyard_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

// Selects the ports: libraries that may join in the same processes use different ones.
typedef enum { TRAINYARD_PROGRAM_COLLECTIVES = 0, TRAINYARD_PROGRAM_HOROVOD } trainyard_program;

typedef struct {
  size_t size;  // sizeof this struct
  trainyard_program program;
  // A null-terminated list of NAME=VALUE. Null: the environment of this process.
  const char* const* variables;
  // The text of SageMaker's resourceconfig.json; empty: none. Null: read from the file, if it
  // exists.
  const char* resourceconfig;
} trainyard_launch_source;

typedef struct {
  size_t size;           // sizeof this struct in the library; newer libraries have more members
  int rank;              // -1: the service assigns it
  int ranks;             // 0: the service assigns it
  int local_rank;        // rank among those on this machine; -1: unknown
  int local_ranks;       // -1: unknown
  const char* launcher;  // the source of rank and ranks, for messages: "torchrun"
  // As trainyard_join.rendezvous. Empty for a single rank, and with a service.
  const char* rendezvous;
  // The membership service of horovodrun, and the names of this process and its host there; empty
  // with other launchers.
  const char* service_host;
  int service_port;
  int elastic;  // 1: the service assigns rank and ranks
  const char* host;
  const char* member;
  const char* secret;
  int encrypt;
  int sockets_per_peer;  // 0: not set
  const char* plans;
  int deterministic;
} trainyard_launch;

// Reads how this process was launched. A null `source` is the same as one of nulls and zeros.
TRAINYARD_PUBLIC trainyard_kind trainyard_launch_read(const trainyard_launch_source* source,
                                                      trainyard_launch** launch, char* message);
TRAINYARD_PUBLIC void trainyard_launch_free(trainyard_launch* launch);

#ifdef __cplusplus
}
#endif
