#include "capi/trainyard_parameters.h"

#include <memory>
#include <span>
#include <string>

#include "capi/conversion.hpp"
#include "parameter_server/parameters.hpp"

using namespace trainyard;
using capi::check_size;
using capi::report;
using capi::text_from;
using parameter_server::Consistency;
using parameter_server::Options;
using parameter_server::Rule;
using parameter_server::Worker;

struct trainyard_worker {
  std::unique_ptr<Worker> worker;
};

namespace {

static_assert(int(Rule::Kind::sum) == TRAINYARD_RULE_SUM &&
              int(Rule::Kind::adagrad) == TRAINYARD_ADAGRAD);
static_assert(int(Consistency::Kind::synchronous) == TRAINYARD_SYNCHRONOUS &&
              int(Consistency::Kind::asynchronous) == TRAINYARD_ASYNCHRONOUS);

Result<Options> options_from(const trainyard_group* group, const trainyard_service* service) {
  if (!group) return invalid("the group of a trainyard_service is null");
  TRY(check_size(service, "trainyard_service"));
  Options options;
  for (size_t i = 0; i < service->tables_count; ++i) {
    const trainyard_table& table = service->tables[i];
    TRY(check_size(&table, "trainyard_table"));
    if (table.rule < TRAINYARD_RULE_SUM || table.rule > TRAINYARD_ADAGRAD)
      return invalid("unknown rule " + std::to_string(table.rule));
    options.tables.push_back({text_from(table.name),
                              table.rows,
                              table.width,
                              {Rule::Kind(table.rule), table.learning_rate, table.momentum}});
  }
  options.servers.assign(service->servers, service->servers + service->servers_count);
  if (service->consistency < TRAINYARD_SYNCHRONOUS || service->consistency > TRAINYARD_ASYNCHRONOUS)
    return invalid("unknown consistency " + std::to_string(service->consistency));
  options.consistency = {Consistency::Kind(service->consistency), service->staleness};
  return options;
}

}  // namespace

extern "C" {

trainyard_kind trainyard_serve(trainyard_group* group, const trainyard_service* service,
                               char* message) {
  const auto options = options_from(group, service);
  if (!options) return report(options.error(), message);
  return report(parameter_server::serve(*group->group, *options), message);
}

trainyard_kind trainyard_worker_join(trainyard_group* group, const trainyard_service* service,
                                     trainyard_worker** worker, char* message) {
  const auto options = options_from(group, service);
  if (!options) return report(options.error(), message);
  auto joined = Worker::join(*group->group, *options);
  if (!joined) return report(joined.error(), message);
  *worker = new trainyard_worker{*std::move(joined)};
  return TRAINYARD_OK;
}

void trainyard_worker_free(trainyard_worker* worker) { delete worker; }

trainyard_kind trainyard_worker_assign(trainyard_worker* worker, uint32_t table,
                                       const float* values, size_t count, char* message) {
  return report(worker->worker->assign(table, std::span(values, count)), message);
}
trainyard_kind trainyard_worker_push(trainyard_worker* worker, uint32_t table, const uint64_t* rows,
                                     size_t rows_count, const float* gradient, size_t count,
                                     char* message) {
  const std::span<const float> values(gradient, count);
  if (!rows) return report(worker->worker->push(table, values), message);
  return report(worker->worker->push(table, std::span(rows, rows_count), values), message);
}
trainyard_kind trainyard_worker_pull(trainyard_worker* worker, uint32_t table, const uint64_t* rows,
                                     size_t rows_count, float* values, size_t count,
                                     char* message) {
  const std::span<float> into(values, count);
  if (!rows) return report(worker->worker->pull(table, into), message);
  return report(worker->worker->pull(table, std::span(rows, rows_count), into), message);
}
trainyard_kind trainyard_worker_end_round(trainyard_worker* worker, char* message) {
  return report(worker->worker->end_round(), message);
}
trainyard_kind trainyard_worker_leave(trainyard_worker* worker, char* message) {
  return report(worker->worker->leave(), message);
}

}  // extern "C"
