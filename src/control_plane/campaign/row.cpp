#include "campaign/row.hpp"

#include "domain/json_fields.hpp"

namespace trainyard::campaign {
namespace {

constexpr RowState kStates[] = {RowState::waiting,    RowState::copying, RowState::ready,
                                RowState::submitting, RowState::running, RowState::completed,
                                RowState::failed,     RowState::stopped};

}  // namespace

std::string_view to_string(RowState state) {
  switch (state) {
    case RowState::waiting:
      return "waiting";
    case RowState::copying:
      return "copying";
    case RowState::ready:
      return "ready";
    case RowState::submitting:
      return "submitting";
    case RowState::running:
      return "running";
    case RowState::completed:
      return "completed";
    case RowState::failed:
      return "failed";
    case RowState::stopped:
      return "stopped";
  }
  return "";
}

Result<RowState> parse_row_state(std::string_view text) {
  for (const RowState state : kStates)
    if (to_string(state) == text) return state;
  return invalid("unknown state of a row: '" + std::string(text) + "'");
}

std::string job_name(const std::string& campaign, const Row& row) {
  const std::string name = campaign + "-" + std::to_string(row.number);
  return row.attempt <= 1 ? name : name + "-" + std::to_string(row.attempt);
}

Json to_json(const Row& row) {
  Json columns = Json::array();
  for (const auto& [name, value] : row.columns) columns.push_back({name, value});
  return {{"number", row.number},
          {"label", row.label},
          {"columns", columns},
          {"data_region", row.data_region},
          {"region", row.region},
          {"why", row.why},
          {"data", row.data},
          {"copy_to", row.copy_to},
          {"request", row.request},
          {"instance_type", row.instance_type},
          {"hosts", row.hosts},
          {"price_per_hour", row.price_per_hour},
          {"copy_price_per_gib", row.copy_price_per_gib},
          {"state", to_string(row.state)},
          {"attempt", row.attempt},
          {"job_id", row.job_id},
          {"status", row.status},
          {"reason", row.reason},
          {"started", domain::instant_json(row.started)},
          {"ended", domain::instant_json(row.ended)},
          {"metrics", row.metrics},
          {"cost", row.cost},
          {"cost_before", row.cost_before},
          {"gpus", row.gpus},
          {"bytes_total", row.bytes_total},
          {"bytes_copied", row.bytes_copied},
          {"bytes_moved", row.bytes_moved},
          {"objects_total", row.objects_total},
          {"objects_copied", row.objects_copied}};
}

Result<Row> row_from_json(const Json& json) {
  Row row;
  Json columns, metrics;
  domain::Fields fields(json, "row");
  fields.read("number", row.number)
      .read("label", row.label)
      .read("columns", columns)
      .read("data_region", row.data_region)
      .read("region", row.region)
      .read("why", row.why)
      .read("data", row.data)
      .read("copy_to", row.copy_to)
      .read("request", row.request)
      .read("instance_type", row.instance_type)
      .read("hosts", row.hosts)
      .read("price_per_hour", row.price_per_hour)
      .read("copy_price_per_gib", row.copy_price_per_gib)
      .read("state", row.state, parse_row_state)
      .read("attempt", row.attempt)
      .read("job_id", row.job_id)
      .read("status", row.status)
      .read("reason", row.reason)
      .read("started", row.started)
      .read("ended", row.ended)
      .read("metrics", metrics)
      .read("cost", row.cost)
      .read("cost_before", row.cost_before)
      .read("gpus", row.gpus)
      .read("bytes_total", row.bytes_total)
      .read("bytes_copied", row.bytes_copied)
      .read("bytes_moved", row.bytes_moved)
      .read("objects_total", row.objects_total)
      .read("objects_copied", row.objects_copied);
  TRY(fields.result());
  // Older records were charged by existing bytes.
  if (!json.contains("bytes_moved")) row.bytes_moved = row.bytes_copied;
  if (columns.is_array())
    for (const Json& pair : columns) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
        return invalid("row.columns must be pairs of name and value");
      row.columns.emplace_back(pair[0].get<std::string>(), pair[1]);
    }
  if (metrics.is_object())
    for (const auto& [name, value] : metrics.items())
      if (value.is_number()) row.metrics[name] = value.get<double>();
  return row;
}

}  // namespace trainyard::campaign
