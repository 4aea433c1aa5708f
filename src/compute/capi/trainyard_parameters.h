// Declares the C API of the parameter server (parameter_server/parameters.hpp), for servers and
// workers.
//
//   trainyard_table tables[] = {{.size = sizeof(trainyard_table), .name = "embedding", .rows = 1000000, .width = 64,
//                                .rule = TRAINYARD_ADAGRAD, .learning_rate = 0.05f}};
//   trainyard_service service = {.size = sizeof service, .tables = tables, .tables_count = 1, .servers = servers,
//                                .servers_count = 1, .consistency = TRAINYARD_BOUNDED, .staleness = 2};
//   if (the rank is one of servers) return trainyard_serve(group, &service, message);       // until all workers have left
//   trainyard_worker_join(group, &service, &worker, message);
//   trainyard_worker_pull(worker, 0, rows, rows_count, values, rows_count * 64, message);
//   trainyard_worker_push(worker, 0, rows, rows_count, gradient, rows_count * 64, message);
//   trainyard_worker_end_round(worker, message);
//   trainyard_worker_leave(worker, message);
//   trainyard_worker_free(worker);
//
// Library, errors: as trainyard_collectives.h. Threads: each object is confined to one. Units:
// counts are elements.
#pragma once

#include "capi/trainyard_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trainyard_worker trainyard_worker;

typedef enum {
  TRAINYARD_RULE_SUM = 0,
  TRAINYARD_SGD,
  TRAINYARD_MOMENTUM,
  TRAINYARD_ADAGRAD
} trainyard_rule;

typedef enum {
  TRAINYARD_SYNCHRONOUS = 0,
  TRAINYARD_BOUNDED,
  TRAINYARD_ASYNCHRONOUS
} trainyard_consistency;

typedef struct {
  size_t size;  // sizeof this struct
  const char* name;
  uint64_t rows;
  uint32_t width;  // numbers per row
  trainyard_rule rule;
  float learning_rate;
  float momentum;
} trainyard_table;

typedef struct {
  size_t size;  // sizeof this struct
  const trainyard_table* tables;
  size_t tables_count;
  const int* servers;  // ranks of the group
  size_t servers_count;
  trainyard_consistency consistency;
  uint64_t staleness;  // rounds; for TRAINYARD_BOUNDED
} trainyard_service;

// Each rank of the group calls one of these two functions, with an equal `service`.
TRAINYARD_PUBLIC trainyard_kind trainyard_serve(trainyard_group* group,
                                                const trainyard_service* service, char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_join(trainyard_group* group,
                                                      const trainyard_service* service,
                                                      trainyard_worker** worker, char* message);
// Frees a worker. Requires: its group is not freed yet.
TRAINYARD_PUBLIC void trainyard_worker_free(trainyard_worker* worker);

// Sets all rows of a table, row after row; `count` is the number of values.
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_assign(trainyard_worker* worker, uint32_t table,
                                                        const float* values, size_t count,
                                                        char* message);
// Transfer the given rows, or all rows if `rows` is null. Values are row after row.
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_push(trainyard_worker* worker, uint32_t table,
                                                      const uint64_t* rows, size_t rows_count,
                                                      const float* gradient, size_t count,
                                                      char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_pull(trainyard_worker* worker, uint32_t table,
                                                      const uint64_t* rows, size_t rows_count,
                                                      float* values, size_t count, char* message);
// Ends the round, and waits until the next may begin (trainyard_service.consistency).
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_end_round(trainyard_worker* worker, char* message);
TRAINYARD_PUBLIC trainyard_kind trainyard_worker_leave(trainyard_worker* worker, char* message);

#ifdef __cplusplus
}
#endif
