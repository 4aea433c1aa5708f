#include "campaign/plan.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "campaign/template.hpp"
#include "domain/instance_type.hpp"
#include "domain/limits.hpp"

namespace trainyard::campaign {
namespace {

constexpr size_t kValuesShownMax = 8;  // values that differ, in one message
constexpr size_t kValueBytesShownMax = 80;

const Json* column(const Row& row, std::string_view name) {
  for (const auto& [known, value] : row.columns)
    if (known == name && !value.is_null()) return &value;
  return nullptr;
}

double number_of(const Row& row, std::string_view name, double otherwise) {
  const Json* found = column(row, name);
  if (!found) return otherwise;
  const auto parsed =
      found->is_number() ? Result<double>(found->get<double>()) : parse_double(text_of(*found));
  return parsed && std::isfinite(*parsed) ? *parsed : otherwise;
}

// Reads a count of the request. The region checks it when the job is created; here it is limited so
// that sums do not overflow.
int64_t hosts_of(const Json& count) {
  if (count.is_number_unsigned() && count.get<uint64_t>() > uint64_t(domain::kCountedMax))
    return domain::kCountedMax;
  return std::clamp<int64_t>(count.get<int64_t>(), 0, domain::kCountedMax);
}

std::string text_at(const Row& row, std::string_view name) {
  const Json* found = column(row, name);
  return found ? text_of(*found) : "";
}

// Returns the part of a URI that is kept below the copy's destination: "s3://bucket/a/b/" -> "b/".
bool is_prefix(const std::string& uri) { return uri.ends_with('/'); }

// A row as it would run in one region.
struct Candidate {
  std::string region;
  Json request;
  std::string copy_to;
  std::string instance_type;
  int64_t hosts = 1;
  double price_per_hour = -1;
  double copy_price_per_gib = 0;
  double cost = -1;  // of job and copy; below 0: unknown
  // Hosts that could start now, and at all; nullopt: unlimited.
  std::optional<int64_t> hosts_now, most;
};

class Planner {
 public:
  Planner(const Definition& definition, const PlanInputs& inputs)
      : definition_(definition), inputs_(inputs) {}

  Result<void> place(Row& row) {
    std::vector<Candidate> candidates;
    for (const auto& region : regions_for(row)) candidates.push_back(TRY(render(row, region)));
    const Candidate& chosen = choose(row, candidates);
    take_capacity(chosen);
    row.region = chosen.region;
    row.request = chosen.request;
    row.copy_to = chosen.copy_to;
    row.instance_type = chosen.instance_type;
    row.hosts = chosen.hosts;
    if (const auto type = domain::find_instance_type(chosen.instance_type))
      row.gpus = int64_t(type->gpus) * chosen.hosts;
    row.price_per_hour = chosen.price_per_hour;
    row.copy_price_per_gib = chosen.copy_price_per_gib;
    row.state = row.copy_to.empty() ? RowState::ready : RowState::waiting;
    if (!row.copy_to.empty()) row.bytes_total = int64_t(number_of(row, "bytes", 0));
    return {};
  }

 private:
  // The data's region comes first, so that data is not copied if costs are equal.
  std::vector<std::string> regions_for(const Row& row) const {
    const bool tied = !row.data.empty() && definition_.placement.copy_to.empty();
    if (definition_.placement.rule == Rule::data || tied) {
      const auto& allowed = definition_.placement.regions;
      // If data is copied, its region need not be one where jobs may run.
      if (tied || allowed.empty() || std::count(allowed.begin(), allowed.end(), row.data_region))
        return {row.data_region};
      return allowed;
    }
    std::vector<std::string> regions{row.data_region};
    const auto add = [&](const std::string& region) {
      if (!std::count(regions.begin(), regions.end(), region)) regions.push_back(region);
    };
    if (definition_.placement.regions.empty()) {
      for (const auto& [region, offers] : inputs_.regions) add(region);
    } else {
      for (const auto& region : definition_.placement.regions) add(region);
      if (!std::count(definition_.placement.regions.begin(), definition_.placement.regions.end(),
                      row.data_region))
        regions.erase(regions.begin());
    }
    return regions;
  }

  Result<Candidate> render(const Row& row, const std::string& region) const {
    Candidate candidate;
    candidate.region = region;
    Values values;
    for (const auto& [name, value] : row.columns) values[name] = value;
    values["campaign"] = definition_.name;
    values["row"] = row.number;
    values["job.region"] = region;
    values["job.data"] = row.data;
    if (!row.data.empty() && region != row.data_region) {
      candidate.copy_to =
          TRY(fill_text(definition_.placement.copy_to, values).in("placement.copy_to"));
      if (is_prefix(row.data) && !is_prefix(candidate.copy_to)) candidate.copy_to += '/';
      values["job.data"] = candidate.copy_to;
      const auto price = inputs_.copy_price_per_gib.find({row.data_region, region});
      if (price != inputs_.copy_price_per_gib.end()) candidate.copy_price_per_gib = price->second;
    }
    candidate.request = TRY(fill(definition_.request, values).in("the job's template"));
    read_size(candidate);
    add_prices(row, candidate);
    return candidate;
  }

  // Batch requests sizes rather than instances, so its jobs are placed without prices.
  void read_size(Candidate& candidate) const {
    const Json& request = candidate.request;
    if (definition_.request_kind == RequestKind::batch_job) {
      if (const auto array = request.find("arrayProperties");
          array != request.end() && array->is_object())
        if (const auto size = array->find("size");
            size != array->end() && size->is_number_integer())
          candidate.hosts = hosts_of(*size);
      // Otherwise a gang has the size of its definition, which is known once the job exists.
      if (const auto nodes = request.find("nodeOverrides");
          nodes != request.end() && nodes->is_object())
        if (const auto count = nodes->find("numNodes");
            count != nodes->end() && count->is_number_integer())
          candidate.hosts = hosts_of(*count);
      return;
    }
    const auto resources = request.find("ResourceConfig");
    if (resources == request.end() || !resources->is_object()) return;
    if (const auto type = resources->find("InstanceType");
        type != resources->end() && type->is_string())
      candidate.instance_type = type->get<std::string>();
    if (const auto count = resources->find("InstanceCount");
        count != resources->end() && count->is_number_integer())
      candidate.hosts = hosts_of(*count);
  }

  void add_prices(const Row& row, Candidate& candidate) const {
    const auto region = inputs_.regions.find(candidate.region);
    if (region == inputs_.regions.end()) return;
    if (!region->second.known) candidate.hosts_now = 0;
    const auto found = region->second.offers.find(candidate.instance_type);
    if (found == region->second.offers.end()) return;
    const Offer& offer = found->second;
    const auto spot = candidate.request.find("EnableManagedSpotTraining");
    const bool is_spot = spot != candidate.request.end() && spot->is_boolean() && spot->get<bool>();
    if (const auto& price = is_spot ? offer.spot : offer.on_demand) {
      candidate.price_per_hour = *price * double(candidate.hosts);
      // Reserved capacity is paid for already.
      const int64_t paid = std::min(candidate.hosts, reserved_left(candidate, offer));
      const double hours = number_of(row, "hours", 1);
      const double gibibytes =
          candidate.copy_to.empty() ? 0 : number_of(row, "bytes", 0) / kGibibyte;
      candidate.cost = *price * double(candidate.hosts - paid) * hours +
                       gibibytes * candidate.copy_price_per_gib;
    }
    const auto taken = taken_.find({candidate.region, candidate.instance_type});
    const int64_t gone = taken == taken_.end() ? 0 : taken->second;
    if (offer.hosts_free) candidate.hosts_now = std::max<int64_t>(0, *offer.hosts_free - gone);
    candidate.most = offer.hosts_total;
  }

  int64_t reserved_left(const Candidate& candidate, const Offer& offer) const {
    const auto taken = taken_.find({candidate.region, candidate.instance_type});
    return std::max<int64_t>(0, offer.hosts_reserved - (taken == taken_.end() ? 0 : taken->second));
  }

  void take_capacity(const Candidate& candidate) {
    taken_[{candidate.region, candidate.instance_type}] += candidate.hosts;
  }

  static bool fits(const std::optional<int64_t>& hosts_now, const Candidate& candidate) {
    return !hosts_now || *hosts_now >= candidate.hosts;
  }

  // Selects the first of equally good candidates: the data's region, then by name.
  const Candidate& choose(Row& row, const std::vector<Candidate>& candidates) const {
    const Rule rule = definition_.placement.rule;
    if (candidates.size() == 1) {
      row.why = candidates[0].region == row.data_region ? "the data is there"
                                                        : "no other region is allowed";
      return candidates[0];
    }
    std::vector<const Candidate*> possible;
    for (const auto& one : candidates)
      if (fits(one.most, one) && (rule != Rule::capacity || fits(one.hosts_now, one)))
        possible.push_back(&one);
    if (possible.empty()) {
      row.why = rule == Rule::capacity
                    ? "no region has free capacity now: it waits where the data is"
                    : "no region is large enough: it waits where the data is";
      return candidates[0];
    }
    if (rule == Rule::capacity && possible.front()->region == row.data_region) {
      row.why = "the data is there, and capacity is free";
      return *possible.front();
    }
    if (rule == Rule::data) {
      row.why = "the first of placement.regions";
      return *possible.front();
    }
    // A region without a price counts as more expensive than all others.
    const auto cheaper = [](const Candidate* a, const Candidate* b) {
      return (a->cost < 0) != (b->cost < 0) ? a->cost >= 0 : a->cost < b->cost;
    };
    const Candidate& best = **std::min_element(possible.begin(), possible.end(), cheaper);
    row.why = rule == Rule::capacity ? "the cheapest with free capacity"
              : best.cost < 0        ? "no region names a price"
                                     : "the cheapest";
    return best;
  }

  const Definition& definition_;
  const PlanInputs& inputs_;
  // hosts, by region and instance type
  std::map<std::pair<std::string, std::string>, int64_t> taken_;
};

Result<Row> read_row(const Definition& definition, const QueryResult& query_result, size_t index,
                     const PlanInputs& inputs, int64_t number) {
  Row row;
  row.number = number;
  for (size_t i = 0; i < query_result.columns.size(); ++i)
    row.columns.emplace_back(query_result.columns[i], query_result.rows[index][i]);
  row.data_region = text_at(row, "region");
  if (row.data_region.empty()) row.data_region = inputs.home;
  row.data = text_at(row, "data");
  if (!row.data.empty() && !row.data.starts_with("s3://"))
    return invalid("the column `data` must be an s3:// URI, not '" + shorten(row.data, 80) + "'");
  row.label = text_at(row, definition.standing ? definition.key : "name");
  if (row.label.empty() && definition.standing)
    return invalid("the column `" + definition.key +
                   "` is empty: it identifies the rows of a standing campaign");
  if (row.label.empty()) row.label = "row " + std::to_string(number);
  return row;
}

void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& into) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, path.empty() ? key : path + "." + key, into);
  } else if (json.is_array() && !json.empty() && json[0].is_structured()) {
    for (size_t i = 0; i < json.size(); ++i)
      flatten(json[i], path + "[" + std::to_string(i) + "]", into);
  } else {
    into[path] = json.is_structured() ? dump(json) : text_of(json);
  }
}

// "HyperParameters.lr" -> "lr"; "" for other paths.
std::string parameter_of(RequestKind request_kind, const std::string& path) {
  static constexpr std::string_view kTraining = "HyperParameters.", kBatch = "parameters.";
  const std::string_view start = request_kind == RequestKind::training_job ? kTraining : kBatch;
  return path.starts_with(start) ? path.substr(start.size()) : "";
}

}  // namespace

Comparison compare(RequestKind request_kind, const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> found;
  for (const Row& row : rows) {
    std::map<std::string, std::string> flat;
    flatten(row.request, "", flat);
    for (const auto& [path, value] : flat) found[path].insert(value);
  }
  Comparison comparison;
  for (const auto& [path, values] : found) {
    if (values.size() == 1) {
      if (const auto name = parameter_of(request_kind, path); !name.empty())
        comparison.same[name] = *values.begin();
      continue;
    }
    auto& shown = comparison.different[path];
    for (const auto& value : values) {
      if (shown.size() == kValuesShownMax) {
        shown.push_back("and " + std::to_string(values.size() - kValuesShownMax) + " more");
        break;
      }
      shown.push_back(shorten(value, kValueBytesShownMax));
    }
  }
  return comparison;
}

Result<Plan> make_plan(const Definition& definition, const QueryResult& query_result,
                       const PlanInputs& inputs, int64_t number_from) {
  if (query_result.rows.size() > kRowsMax)
    return invalid("the query has more than " + std::to_string(kRowsMax) +
                   " rows, the maximum of a campaign");
  if (query_result.columns.size() > kColumnsMax)
    return invalid("the query has more than " + std::to_string(kColumnsMax) + " columns");
  Planner planner(definition, inputs);
  Plan plan;
  for (size_t i = 0; i < query_result.rows.size(); ++i) {
    const int64_t number = number_from + int64_t(i);
    const std::string context = "row " + std::to_string(number);
    Row row = TRY(read_row(definition, query_result, i, inputs, number).in(context));
    TRY(planner.place(row).in(context + " (" + shorten(row.label, 60) + ")"));
    plan.rows.push_back(std::move(row));
  }
  plan.comparison = compare(definition.request_kind, plan.rows);
  return plan;
}

}  // namespace trainyard::campaign
