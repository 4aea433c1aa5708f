#include "campaign/definition.hpp"

#include <algorithm>
#include <set>

#include "base/enum_table.hpp"
#include "base/text.hpp"

namespace trainyard::campaign {
namespace {

constexpr EnumTable<Rule> kRules{
    "rule", {{Rule::data, "data"}, {Rule::cheapest, "cheapest"}, {Rule::capacity, "capacity"}}};

// Reads a table of the definition and notes which keys were read, so that unknown keys can be
// named. Users write definitions, so they are read by hand and not by a JsonRecord, which ignores
// unknown keys and knows no bounds.
class Table {
 public:
  Table(const Json& json, std::string location) : json_(json), location_(std::move(location)) {}

  Result<void> read(const char* key, std::string& into) {
    return read_as(key, "a string", &Json::is_string, into);
  }
  Result<void> read(const char* key, bool& into) {
    return read_as(key, "true or false", &Json::is_boolean, into);
  }
  Result<void> read(const char* key, int64_t& into, int64_t least, int64_t most) {
    const std::string wanted =
        "a whole number between " + std::to_string(least) + " and " + std::to_string(most);
    TRY(read_as(key, wanted, &Json::is_number_integer, into));
    if (into < least || into > most) return must_be(key, wanted);
    return {};
  }
  Result<void> read(const char* key, std::vector<std::string>& into) {
    const Json* found = find(key);
    if (!found) return {};
    if (!found->is_array()) return must_be(key, "a list of strings");
    for (const Json& each : *found) {
      if (!each.is_string()) return must_be(key, "a list of strings");
      into.push_back(each.get<std::string>());
    }
    return {};
  }
  Result<void> read(const char* key, std::map<std::string, std::string>& into) {
    const Json* found = find(key);
    if (!found) return {};
    if (!found->is_object()) return must_be(key, "a table of strings");
    for (const auto& [name, value] : found->items()) {
      if (!value.is_string()) return must_be(key, "a table of strings");
      into[name] = value.get<std::string>();
    }
    return {};
  }
  // nullptr when it is missing. Errors: when it is not a table.
  Result<const Json*> table(const char* key) {
    const Json* found = find(key);
    if (found && !found->is_object()) return must_be(key, "a table");
    return found;
  }
  const Json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  Result<void> nothing_else() const {
    for (const auto& [key, value] : json_.items()) {
      if (known_.count(key)) continue;
      std::string names;
      for (const auto& one : known_) names += (names.empty() ? "" : ", ") + one;
      return invalid("unknown key '" + shorten(key, 60) + "'" +
                     (location_.empty() ? "" : " in [" + location_ + "]") +
                     "; known keys: " + names);
    }
    return {};
  }
  Error must_be(const std::string& key, const std::string& wanted) const {
    return invalid((location_.empty() ? key : location_ + "." + key) + " must be " + wanted);
  }

 private:
  template <class T>
  Result<void> read_as(const char* key, const std::string& wanted,
                       bool (Json::*is)() const noexcept, T& into) {
    const Json* found = find(key);
    if (!found) return {};
    if (!(found->*is)()) return must_be(key, wanted);
    into = found->template get<T>();
    return {};
  }

  const Json& json_;
  const std::string location_;
  std::set<std::string> known_;
};

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-';
         });
}

// Names that need no quotes in SQL: letters, digits, underscores.
bool is_identifier(const std::string& name) {
  constexpr size_t kIdentifierBytesMax = 63;  // PostgreSQL's
  return !name.empty() && name.size() <= kIdentifierBytesMax &&
         !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

Result<Placement> read_placement(const Json& json) {
  Table table(json, "placement");
  Placement placement;
  std::string rule(to_string(placement.rule));
  TRY(table.read("rule", rule));
  TRY(table.read("regions", placement.regions));
  TRY(table.read("copy_to", placement.copy_to));
  TRY(table.nothing_else());
  const auto known = kRules.find(rule);
  if (!known) return table.must_be("rule", "\"data\", \"cheapest\" or \"capacity\"");
  placement.rule = *known;
  if (!placement.copy_to.empty() && !placement.copy_to.starts_with("s3://"))
    return table.must_be("copy_to", "an s3:// URI");
  return placement;
}

Result<Wanted> read_wanted(const Json& json) {
  Table table(json, "results");
  Wanted wanted;
  std::string order = "highest";
  TRY(table.read("best", wanted.best));
  TRY(table.read("order", order));
  TRY(table.read("rate", wanted.rate));
  TRY(table.nothing_else());
  if (order != "highest" && order != "lowest")
    return table.must_be("order", "\"highest\" or \"lowest\"");
  wanted.highest = order == "highest";
  return wanted;
}

Result<Watch> read_watch(const Json& json, size_t index) {
  const std::string location = "watch[" + std::to_string(index) + "]";
  if (!json.is_object()) return invalid(location + " must be a table");
  Table table(json, location);
  Watch watch;
  std::string uri;
  TRY(table.read("region", watch.region));
  TRY(table.read("uri", uri));
  TRY(table.read("suffix", watch.suffix));
  TRY(table.read("table", watch.table));
  TRY(table.read("row", watch.row));
  TRY(table.nothing_else());
  if (!uri.starts_with("s3://") || uri.size() == 5 || uri[5] == '/')
    return table.must_be("uri", "s3://BUCKET/PREFIX");
  const size_t slash = uri.find('/', 5);
  watch.bucket = uri.substr(5, slash == std::string::npos ? slash : slash - 5);
  watch.prefix = slash == std::string::npos ? "" : uri.substr(slash + 1);
  if (!is_identifier(watch.table))
    return table.must_be("table", "a table name: letters, digits, '_'");
  if (!watch.row.count("name"))
    return table.must_be("row", "a table with `name`: the column that identifies a row");
  for (const auto& [column, text] : watch.row)
    if (!is_identifier(column))
      return invalid(location + ".row: invalid column name '" + shorten(column, 60) + "'");
  return watch;
}

Result<void> read_watches(Table& root, Definition& definition) {
  const Json* watches = root.find("watch");
  if (!watches) return {};
  if (!watches->is_array() || watches->size() > kWatchesMax)
    return root.must_be("watch", "at most " + std::to_string(kWatchesMax) + " tables, [[watch]]");
  for (size_t i = 0; i < watches->size(); ++i)
    definition.watches.push_back(TRY(read_watch((*watches)[i], i)));
  return {};
}

}  // namespace

std::string_view to_string(Rule rule) { return kRules.text(rule); }

Result<Definition> read_definition(std::string_view text) {
  if (text.size() > kDefinitionBytesMax)
    return invalid("the campaign has more than " + human_bytes(kDefinitionBytesMax));
  const Json json = TRY(parse_json(text));
  if (!json.is_object()) return invalid("a campaign must be an object");
  Table root(json, "");
  Definition definition;
  TRY(root.read("name", definition.name));
  TRY(root.read("query", definition.query));
  TRY(root.read("retries", definition.retries, 0, kRetriesMax));
  TRY(root.read("at_once", definition.at_once, 1, kAtOnceMax));
  TRY(root.read("standing", definition.standing));
  TRY(root.read("key", definition.key));
  if (const Json* found = TRY(root.table("placement")))
    definition.placement = TRY(read_placement(*found));
  if (const Json* found = TRY(root.table("results"))) definition.wanted = TRY(read_wanted(*found));
  TRY(read_watches(root, definition));
  const Json* training = TRY(root.table("training_job"));
  const Json* batch = TRY(root.table("batch_job"));
  TRY(root.nothing_else());
  if (!is_name(definition.name))
    return root.must_be("name", "1 to " + std::to_string(kNameBytesMax) +
                                    " letters, digits and '-', and begin "
                                    "and end with none of these");
  if (trim(definition.query).empty()) return root.must_be("query", "SQL: its rows become jobs");
  if (bool(training) == bool(batch))
    return invalid("one of [training_job] and [batch_job] must say what each row starts");
  definition.request_kind = training ? RequestKind::training_job : RequestKind::batch_job;
  definition.request = training ? *training : *batch;
  return definition;
}

Result<void> check(const Definition& definition) {
  const Rule rule = definition.placement.rule;
  if (definition.request_kind == RequestKind::training_job || rule == Rule::data) return {};
  return invalid("placement.rule \"" + std::string(to_string(rule)) +
                 "\" is for [training_job], which names its instance type: what a job of Batch "
                 "takes of a region is known to its job definition there. Use \"data\", with a "
                 "query that says each row's region");
}

Json to_json(const Definition& definition) {
  Json json{{"name", definition.name},
            {"query", definition.query},
            {"retries", definition.retries},
            {"at_once", definition.at_once},
            {"standing", definition.standing},
            {"key", definition.key},
            {definition.request_kind == RequestKind::training_job ? "training_job" : "batch_job",
             definition.request}};
  json["placement"] = {{"rule", to_string(definition.placement.rule)},
                       {"regions", definition.placement.regions},
                       {"copy_to", definition.placement.copy_to}};
  json["results"] = {{"best", definition.wanted.best},
                     {"order", definition.wanted.highest ? "highest" : "lowest"},
                     {"rate", definition.wanted.rate}};
  json["watch"] = Json::array();
  for (const Watch& watch : definition.watches)
    json["watch"].push_back({{"region", watch.region},
                             {"uri", "s3://" + watch.bucket + "/" + watch.prefix},
                             {"suffix", watch.suffix},
                             {"table", watch.table},
                             {"row", watch.row}});
  return json;
}

}  // namespace trainyard::campaign
