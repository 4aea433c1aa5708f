#include "campaign/row.hpp"

#include "base/enum_table.hpp"
#include "base/json_record.hpp"

namespace trainyard::campaign {
namespace {

constexpr EnumTable<RowState> kStates{"row state",
                                      {{RowState::waiting, "waiting"},
                                       {RowState::copying, "copying"},
                                       {RowState::ready, "ready"},
                                       {RowState::submitting, "submitting"},
                                       {RowState::running, "running"},
                                       {RowState::completed, "completed"},
                                       {RowState::failed, "failed"},
                                       {RowState::stopped, "stopped"}}};

using Columns = decltype(Row::columns);
struct ColumnsForm {
  using Value = Columns;
  static Json write(const Columns& columns) {
    Json list = Json::array();
    for (const auto& [name, value] : columns) list.push_back({name, value});
    return list;
  }
  static Result<void> read_into(const Json& json, Columns& columns) {
    if (!json.is_array()) return {};
    for (const Json& pair : json) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
        return invalid("row.columns must be pairs of name and value");
      columns.emplace_back(pair[0].get<std::string>(), pair[1]);
    }
    return {};
  }
};

using Metrics = decltype(Row::metrics);
struct MetricsForm {
  using Value = Metrics;
  static Json write(const Metrics& metrics) { return metrics; }
  static Result<void> read_into(const Json& json, Metrics& metrics) {
    if (!json.is_object()) return {};
    for (const auto& [name, value] : json.items())
      if (value.is_number()) metrics[name] = value.get<double>();
    return {};
  }
};

constexpr auto kRow = json_record<Row>("row", [](auto& side, auto& row) {
  side("number", row.number);
  side("label", row.label);
  side("columns", row.columns, ColumnsForm());
  side("data_region", row.data_region);
  side("region", row.region);
  side("why", row.why);
  side("data", row.data);
  side("copy_to", row.copy_to);
  side("request", row.request);
  side("instance_type", row.instance_type);
  side("hosts", row.hosts);
  side("price_per_hour", row.price_per_hour);
  side("copy_price_per_gib", row.copy_price_per_gib);
  side("state", row.state, kStates);
  side("attempt", row.attempt);
  side("job_id", row.job_id);
  side("status", row.status);
  side("reason", row.reason);
  side("started", row.started);
  side("ended", row.ended);
  side("metrics", row.metrics, MetricsForm());
  side("cost", row.cost);
  side("cost_before", row.cost_before);
  side("gpus", row.gpus);
  side("bytes_total", row.bytes_total);
  side("bytes_copied", row.bytes_copied);
  side("bytes_moved", row.bytes_moved);
  side("objects_total", row.objects_total);
  side("objects_copied", row.objects_copied);
});

}  // namespace

std::string_view to_string(RowState state) { return kStates.text(state); }
Result<RowState> parse_row_state(std::string_view text) { return kStates.parse(text); }

std::string job_name(const std::string& campaign, const Row& row) {
  const std::string name = campaign + "-" + std::to_string(row.number);
  return row.attempt <= 1 ? name : name + "-" + std::to_string(row.attempt);
}

Json to_json(const Row& row) { return kRow.write(row); }

Result<Row> row_from_json(const Json& json) {
  Row row = TRY(kRow.read(json));
  // Older records have no transferred bytes; they were charged by existing bytes.
  if (!json.contains("bytes_moved")) row.bytes_moved = row.bytes_copied;
  return row;
}

}  // namespace trainyard::campaign
