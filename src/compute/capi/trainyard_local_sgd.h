// Trains in regions that are connected by slow links: local_sgd/local_sgd.hpp in C.
//
//   trainyard_regions* regions;
//   trainyard_regions_join join = {.size = sizeof join, .region = 0, .regions = 2, .hosts = hosts, .ports = ports,
//                                  .secret = "s", .learning_rate = 0.7f, .momentum = 0.6f, .coding = "bf16"};
//   if (trainyard_regions_open(&join, parameters, count, &regions, message) != TRAINYARD_OK) ...
//   while (trainyard_regions_round(regions) < rounds) {
//     train(parameters);                                                   // a hundred steps
//     if (trainyard_regions_average(regions, parameters, count, rows_seen, NULL, message) != TRAINYARD_OK) ...
//   }
//   trainyard_regions_finish(regions, message);
//   trainyard_regions_free(regions);
//
// The functions keep the names that programs link with (trainyard_regions_..).
//
// Library, errors: as trainyard_collectives.h. Threads: confined to one. Units: counts are
// elements; milliseconds.
#pragma once

#include "capi/trainyard_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trainyard_regions trainyard_regions;

typedef struct {
  size_t size;  // sizeof this struct
  int region;
  int regions;
  const char* const* hosts;  // names or addresses of the leaders, by region
  const uint16_t* ports;
  const char* secret;   // may be null
  float learning_rate;  // of the outer step; 1, with momentum 0, is federated averaging
  float momentum;
  const char* coding;        // "f32", "f16", "bf16", "int8"; null is bf16
  const char* charter;       // text that the founding region sends to all; may be null
  int regions_min;           // how many suffice to start after the join deadline; 0: all
  int64_t join_deadline_ms;  // 0: the default of the library
  int64_t round_timeout_ms;  // 0: the default of the library
  int encrypt;               // not 0: encrypt the links; equal in all regions
} trainyard_regions_join;

typedef struct {
  uint64_t number;  // completed rounds
  int regions;      // members of the group
  // not 0: this region's parameters were replaced by the others', because it was behind or away
  int adopted;
} trainyard_round;

// Joins the other regions; sets `parameters` to theirs if they have already begun training.
TRAINYARD_PUBLIC trainyard_kind trainyard_regions_open(const trainyard_regions_join* join,
                                                       float* parameters, size_t count,
                                                       trainyard_regions** regions, char* message);
// Leaves the other regions, which continue, and frees the memory.
TRAINYARD_PUBLIC void trainyard_regions_free(trainyard_regions* regions);
// Averages `parameters` with the other regions, weighted by `weight` (samples since the last
// round). `round` may be null.
TRAINYARD_PUBLIC trainyard_kind trainyard_regions_average(trainyard_regions* regions,
                                                          float* parameters, size_t count,
                                                          double weight, trainyard_round* round,
                                                          char* message);
// Call after the last round: waits until every reachable region has it too.
TRAINYARD_PUBLIC trainyard_kind trainyard_regions_finish(trainyard_regions* regions, char* message);
// Returns the number of completed rounds.
TRAINYARD_PUBLIC uint64_t trainyard_regions_round(const trainyard_regions* regions);
// Returns the founding region's charter. The text lives until the next average or free.
TRAINYARD_PUBLIC const char* trainyard_regions_charter(const trainyard_regions* regions);
// Sets `sent` and `received` to the bytes sent and received between regions so far. Either may be
// null.
TRAINYARD_PUBLIC void trainyard_regions_traffic(const trainyard_regions* regions, uint64_t* sent,
                                                uint64_t* received);

#ifdef __cplusplus
}
#endif
