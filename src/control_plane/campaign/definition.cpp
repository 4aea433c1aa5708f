#include "campaign/definition.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/enum_table.hpp"
#include "base/text.hpp"

namespace trainyard::campaign {
namespace {

constexpr EnumTable<Rule> kRules{
    "rule", {{Rule::data, "data"}, {Rule::cheapest, "cheapest"}, {Rule::capacity, "capacity"}}};

constexpr std::string_view kUriScheme = "s3://";

constexpr const char* member_of(RequestKind kind) {
  return kind == RequestKind::training_job ? "training_job" : "batch_job";
}

// The texts of ResultMetrics::highest, with the functions of an EnumTable.
struct Orders {
  static std::string_view text(bool highest) { return highest ? "highest" : "lowest"; }
  static std::optional<bool> find(std::string_view text) {
    if (text != "highest" && text != "lowest") return std::nullopt;
    return text == "highest";
  }
};

bool all_strings(const Json& list) {
  return std::all_of(list.begin(), list.end(), [](const Json& each) { return each.is_string(); });
}

// TableReader reads a table of the definition. Users write definitions, so unlike JsonRecord it
// reports unknown keys and numbers out of bounds. It keeps the first error.
class TableReader {
 public:
  TableReader(const Json& json, std::string location)
      : json_(json), location_(std::move(location)) {}

  void operator()(const char* key, std::string& into) {
    read_as(key, "a string", &Json::is_string, into);
  }
  void operator()(const char* key, bool& into) {
    read_as(key, "true or false", &Json::is_boolean, into);
  }
  void operator()(const char* key, int64_t& into, int64_t least, int64_t most) {
    const std::string wanted =
        "a whole number between " + std::to_string(least) + " and " + std::to_string(most);
    read_as(key, wanted, &Json::is_number_integer, into);
    if (into < least || into > most) must_be(key, wanted);
  }
  void operator()(const char* key, std::vector<std::string>& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_array() || !all_strings(*found)) return must_be(key, "a list of strings");
    into = found->get<std::vector<std::string>>();
  }
  void operator()(const char* key, std::map<std::string, std::string>& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_object() || !all_strings(*found)) return must_be(key, "a table of strings");
    into = found->get<std::map<std::string, std::string>>();
  }
  template <class T, class Names>
  void choice(const char* key, T& into, const Names& names, const char* wanted) {
    std::string text(names.text(into));
    (*this)(key, text);
    if (const auto known = names.find(text))
      into = *known;
    else
      must_be(key, wanted);
  }
  void uri(const char* key, std::string& bucket, std::string& prefix) {
    std::string text;
    (*this)(key, text);
    if (!text.starts_with(kUriScheme) || text.size() == kUriScheme.size() ||
        text[kUriScheme.size()] == '/')
      return must_be(key, "s3://BUCKET/PREFIX");
    const size_t slash = text.find('/', kUriScheme.size());
    bucket = text.substr(kUriScheme.size(), slash - kUriScheme.size());
    prefix = slash == std::string::npos ? "" : text.substr(slash + 1);
  }
  template <class T, class Describe>
  void table(const char* key, T& into, const Describe& describe) {
    const Json* found = find(key);
    if (found && !found->is_object()) return must_be(key, "a table");
    if (found) read_inner(*found, key, into, describe);
  }
  template <class T, class Describe>
  void list(const char* key, std::vector<T>& into, size_t most, const Describe& describe) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_array() || found->size() > most)
      return must_be(key, "at most " + std::to_string(most) + " tables, [[" + key + "]]");
    for (const Json& each : *found) {
      const std::string location = key + ("[" + std::to_string(into.size()) + "]");
      if (!each.is_object()) return keep(invalid(location + " must be a table"));
      read_inner(each, location, into.emplace_back(), describe);
    }
  }
  // Reads the request from the member that is named after its kind.
  void request(RequestKind& kind, Json& into) {
    const Json* training = find(member_of(RequestKind::training_job));
    const Json* batch = find(member_of(RequestKind::batch_job));
    if (bool(training) == bool(batch))
      return keep(invalid("one of [training_job] and [batch_job] must say what each row starts"));
    kind = training ? RequestKind::training_job : RequestKind::batch_job;
    into = training ? *training : *batch;
    if (!into.is_object()) must_be(member_of(kind), "a table");
  }

  void must_be(const std::string& key, const std::string& wanted) {
    keep(invalid((location_.empty() ? key : location_ + "." + key) + " must be " + wanted));
  }
  void keep(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::string& location() const { return location_; }

  // Unknown keys are reported first: a misspelt key explains a missing one.
  Result<void> result() && {
    for (const auto& [key, value] : json_.items()) {
      if (known_.contains(key)) continue;
      const std::string names = join(known_, ", ");
      return invalid("unknown key '" + shorten(key, 60) + "'" +
                     (location_.empty() ? "" : " in [" + location_ + "]") +
                     "; known keys: " + names);
    }
    if (error_) return *std::move(error_);
    return {};
  }

 private:
  const Json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  template <class T>
  void read_as(const char* key, const std::string& wanted, bool (Json::*is)() const noexcept,
               T& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!(found->*is)()) return must_be(key, wanted);
    into = found->template get<T>();
  }
  template <class T, class Describe>
  void read_inner(const Json& json, const std::string& location, T& into,
                  const Describe& describe) {
    TableReader inner(json, location);
    describe(inner, into);
    check(inner, into);
    if (auto read = std::move(inner).result(); !read) keep(std::move(read).error());
  }

  static void check(TableReader& table, const Placement& placement);
  static void check(TableReader&, const ResultMetrics&) {}
  static void check(TableReader& table, const Watch& watch);

  const Json& json_;
  const std::string location_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

// Writes what TableReader reads.
class TableWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = value;
  }
  void operator()(const char* key, int64_t value, int64_t, int64_t) { json_[key] = value; }
  template <class T, class Names>
  void choice(const char* key, const T& value, const Names& names, const char*) {
    json_[key] = names.text(value);
  }
  void uri(const char* key, const std::string& bucket, const std::string& prefix) {
    json_[key] = std::string(kUriScheme) + bucket + "/" + prefix;
  }
  template <class T, class Describe>
  void table(const char* key, const T& value, const Describe& describe) {
    json_[key] = written(value, describe);
  }
  template <class T, class Describe>
  void list(const char* key, const std::vector<T>& values, size_t, const Describe& describe) {
    json_[key] = Json::array();
    for (const T& each : values) json_[key].push_back(written(each, describe));
  }
  void request(RequestKind kind, const Json& value) { json_[member_of(kind)] = value; }

  template <class T, class Describe>
  static Json written(const T& value, const Describe& describe) {
    TableWriter side;
    describe(side, value);
    return std::move(side.json_);
  }

 private:
  Json json_ = Json::object();
};

constexpr auto kDescribePlacement = [](auto& side, auto& placement) {
  side.choice("rule", placement.rule, kRules, "\"data\", \"cheapest\" or \"capacity\"");
  side("regions", placement.regions);
  side("copy_to", placement.copy_to);
};
constexpr auto kDescribeResultMetrics = [](auto& side, auto& metrics) {
  side("best", metrics.best);
  side.choice("order", metrics.highest, Orders(), "\"highest\" or \"lowest\"");
  side("rate", metrics.rate);
};
constexpr auto kDescribeWatch = [](auto& side, auto& watch) {
  side("region", watch.region);
  side.uri("uri", watch.bucket, watch.prefix);
  side("suffix", watch.suffix);
  side("table", watch.table);
  side("row", watch.row);
};
constexpr auto kDescribeDefinition = [](auto& side, auto& definition) {
  side("name", definition.name);
  side("query", definition.query);
  side("retries", definition.retries, 0, kRetriesMax);
  side("at_once", definition.at_once, 1, kAtOnceMax);
  side("standing", definition.standing);
  side("key", definition.key);
  side.table("placement", definition.placement, kDescribePlacement);
  side.table("results", definition.result_metrics, kDescribeResultMetrics);
  side.list("watch", definition.watches, kWatchesMax, kDescribeWatch);
  side.request(definition.request_kind, definition.request);
};

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax && name.front() != '-' &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-';
         });
}

// Returns true for names that need no quotes in SQL: letters, digits, underscores.
bool is_identifier(const std::string& name) {
  constexpr size_t kIdentifierBytesMax = 63;  // PostgreSQL's
  return !name.empty() && name.size() <= kIdentifierBytesMax &&
         !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

void TableReader::check(TableReader& table, const Placement& placement) {
  if (!placement.copy_to.empty() && !placement.copy_to.starts_with(kUriScheme))
    table.must_be("copy_to", "an s3:// URI");
}

void TableReader::check(TableReader& table, const Watch& watch) {
  if (!is_identifier(watch.table)) table.must_be("table", "a table name: letters, digits, '_'");
  if (!watch.row.contains("name"))
    table.must_be("row", "a table with `name`: the column that identifies a row");
  for (const auto& [column, text] : watch.row)
    if (!is_identifier(column))
      table.keep(
          invalid(table.location() + ".row: invalid column name '" + shorten(column, 60) + "'"));
}

}  // namespace

std::string_view to_string(Rule rule) { return kRules.text(rule); }

Result<Definition> read_definition(std::string_view text) {
  if (text.size() > kDefinitionBytesMax)
    return invalid("the campaign has more than " + human_bytes(kDefinitionBytesMax));
  const Json json = TRY(parse_json(text));
  if (!json.is_object()) return invalid("a campaign must be an object");
  TableReader root(json, "");
  Definition definition;
  kDescribeDefinition(root, definition);
  if (!is_name(definition.name))
    root.must_be("name", "1 to " + std::to_string(kNameBytesMax) +
                             " letters, digits and '-', and begin and end with none of these");
  if (trim(definition.query).empty()) root.must_be("query", "SQL: its rows become jobs");
  TRY(std::move(root).result());
  return definition;
}

Result<void> check(const Definition& definition) {
  const Rule rule = definition.placement.rule;
  if (definition.request_kind == RequestKind::training_job || rule == Rule::data) return {};
  return invalid("placement.rule \"" + std::string(to_string(rule)) +
                 "\" is for [training_job], which names its instance type: what a job of Batch "
                 "takes of a region is known only to its job definition there. Use \"data\", with "
                 "a query that has each row's region");
}

Json to_json(const Definition& definition) {
  return TableWriter::written(definition, kDescribeDefinition);
}

}  // namespace trainyard::campaign
