#include "insights/pipeline.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace trainyard::insights {
namespace {

constexpr size_t kGroupBytes = 256;  // of a group, on top of its key
constexpr size_t kAccumulatorBytes = sizeof(Accumulator);
constexpr size_t kSeenBytes = 64;  // of a key of dedup, on top of its text

bool treats_rows_alone(const Command& command) {
  return std::holds_alternative<FieldsCommand>(command) ||
         std::holds_alternative<DisplayCommand>(command) ||
         std::holds_alternative<FilterCommand>(command) ||
         std::holds_alternative<ParseCommand>(command);
}
bool holds_rows_back(const Command& command) {
  return std::holds_alternative<StatsCommand>(command) ||
         std::holds_alternative<SortCommand>(command);
}

// Equal keys have equal texts: lengths separate the values, and nothing differs from "".
void append_key(std::string& key, const Value& value) {
  if (value.nothing()) {
    key += '-';
    return;
  }
  const std::string text = value.text();
  key += std::to_string(text.size()) + ':' + text;
}

void add_unless_there(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

Pipeline::Pipeline(const Query& query, Instant now, const Limits& limits)
    : context_{.now = now}, limits_(limits) {
  for (const Command& command : query.commands) {
    if (whole_stages_ == stages_.size() && treats_rows_alone(command)) ++whole_stages_;
    stages_.push_back({.command = &command});
  }
  // A sort before limit, or at the end, keeps no more rows than that takes.
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (!std::holds_alternative<SortCommand>(*stages_[i].command)) continue;
    size_t next = i + 1;
    while (next < stages_.size() && treats_rows_alone(*stages_[next].command) &&
           !std::holds_alternative<FilterCommand>(*stages_[next].command))
      ++next;
    if (next == stages_.size())
      stages_[i].rows_max = limits_.rows_max;
    else if (const auto* limit = std::get_if<LimitCommand>(stages_[next].command))
      stages_[i].rows_max = limit->rows;
  }
  find_columns(query);
}

void Pipeline::find_columns(const Query& query) {
  bool chosen = false;
  for (const Command& command : query.commands) {
    if (const auto* fields = std::get_if<FieldsCommand>(&command)) {
      chosen = true;
      for (const Column& column : fields->columns) add_unless_there(columns_, column.name);
    } else if (const auto* display = std::get_if<DisplayCommand>(&command)) {
      chosen = true;
      columns_.clear();
      for (const Column& column : display->columns) add_unless_there(columns_, column.name);
    } else if (const auto* parse = std::get_if<ParseCommand>(&command)) {
      for (const std::string& name : parse->names) add_unless_there(columns_, name);
    } else if (const auto* stats = std::get_if<StatsCommand>(&command)) {
      chosen = true;
      shows_pointer_ = false;
      columns_.clear();
      for (const Column& column : stats->groups) add_unless_there(columns_, column.name);
      for (const Aggregate& each : stats->aggregates) add_unless_there(columns_, each.name);
    }
  }
  if (!chosen) columns_.insert(columns_.begin(), {"@timestamp", "@message"});
}

Result<bool> Pipeline::take(std::shared_ptr<const Event> event) {
  if (full_) return false;
  context_.at = double(event->at);
  TRY(push(0, Row(std::move(event))));
  return !full_;
}

Result<void> Pipeline::push(size_t stage, Row row) {
  const bool is_event = stage == 0;
  for (; stage < stages_.size(); ++stage) {
    if (is_event && stage == whole_stages_) ++matched_;
    if (!TRY(apply(stages_[stage], row))) return ok();
  }
  if (is_event && whole_stages_ == stages_.size()) ++matched_;
  return add_result(row);
}

Result<bool> Pipeline::apply(Stage& stage, Row& row) {
  const Command& command = *stage.command;
  if (row.event()) context_.at = double(row.event()->at);
  const auto set_all = [&](const std::vector<Column>& columns) {
    for (const Column& column : columns)
      if (column.expression->kind != Expression::Kind::field ||
          column.expression->field != column.name)
        row.set(column.name, evaluate(*column.expression, row, context_));
    return true;
  };
  if (const auto* fields = std::get_if<FieldsCommand>(&command)) return set_all(fields->columns);
  if (const auto* display = std::get_if<DisplayCommand>(&command)) return set_all(display->columns);
  if (const auto* filter = std::get_if<FilterCommand>(&command))
    return evaluate(*filter->condition, row, context_).holds();
  if (const auto* parse = std::get_if<ParseCommand>(&command)) {
    const Value text = parse->of ? evaluate(*parse->of, row, context_) : row.field("@message");
    std::vector<std::string> found;
    if (!text.nothing() && parse->pattern->capture(text.text(), found))
      for (size_t i = 0; i < found.size(); ++i)
        row.set(parse->names[i], Value::of_text(std::move(found[i])));
    return true;
  }
  if (const auto* stats = std::get_if<StatsCommand>(&command)) {
    TRY(group(stage, *stats, row));
    return false;
  }
  if (const auto* sort = std::get_if<SortCommand>(&command)) {
    TRY(hold(stage, *sort, std::move(row)));
    return false;
  }
  if (const auto* dedup = std::get_if<DedupCommand>(&command)) return is_first(stage, *dedup, row);
  const size_t rows = std::get<LimitCommand>(command).rows;
  if (stage.passed >= rows) return false;
  // Every later event would have to pass here, if nothing before it holds rows back.
  if (++stage.passed == rows && std::none_of(stages_.data(), &stage, [](const Stage& before) {
        return holds_rows_back(*before.command);
      }))
    full_ = true;
  return true;
}

Result<void> Pipeline::use(size_t bytes) {
  memory_bytes_ += bytes;
  if (memory_bytes_ > limits_.memory_bytes_max)
    return exhausted("the query needs more memory than the " +
                     human_bytes(limits_.memory_bytes_max) + " that one may use");
  return ok();
}

Result<void> Pipeline::group(Stage& stage, const StatsCommand& stats, const Row& row) {
  std::string key;
  std::vector<Value> values;
  for (const Column& column : stats.groups) {
    values.push_back(evaluate(*column.expression, row, context_));
    append_key(key, values.back());
  }
  auto found = stage.group_of.find(key);
  if (found == stage.group_of.end()) {
    if (stage.groups.size() >= limits_.groups_max) {
      ++skipped_;
      return ok();
    }
    TRY(use(2 * key.size() + kGroupBytes + kAccumulatorBytes * stats.aggregates.size()));
    Group made;
    made.accumulators.resize(stats.aggregates.size());
    for (size_t i = 0; i < values.size(); ++i)
      made.key.set(stats.groups[i].name, std::move(values[i]));
    found = stage.group_of.emplace(std::move(key), stage.groups.size()).first;
    stage.groups.push_back(std::move(made));
  }
  Group& group = stage.groups[found->second];
  for (size_t i = 0; i < stats.aggregates.size(); ++i) {
    const Aggregate& aggregate = stats.aggregates[i];
    const Value value = aggregate.of ? evaluate(*aggregate.of, row, context_) : Value();
    TRY(use(group.accumulators[i].add(aggregate, value, context_.at)));
  }
  return ok();
}

// Stable: rows with equal keys stay in their order.
void Pipeline::sort_rows(Stage& stage, const SortCommand& sort) {
  std::ranges::stable_sort(stage.rows, [&](const HeldRow& a, const HeldRow& b) {
    for (size_t i = 0; i < sort.keys.size(); ++i) {
      const auto order = order_of(a.keys[i], b.keys[i]);
      if (order != 0) return sort.keys[i].descending ? order > 0 : order < 0;
    }
    return false;
  });
  if (stage.rows_max != 0 && stage.rows.size() > stage.rows_max)
    stage.rows.erase(stage.rows.begin() + ptrdiff_t(stage.rows_max), stage.rows.end());
}

// Sorts when there are twice as many rows as are kept, so that each is compared a few times only.
Result<void> Pipeline::hold(Stage& stage, const SortCommand& sort, Row row) {
  HeldRow held;
  for (const auto& key : sort.keys) held.keys.push_back(evaluate(*key.expression, row, context_));
  held.bytes = row.bytes();
  for (const Value& key : held.keys) held.bytes += sizeof key + key.bytes();
  held.row = std::move(row);
  stage.rows_bytes += held.bytes;
  const size_t bytes = held.bytes;
  stage.rows.push_back(std::move(held));
  if (stage.rows_max != 0 && stage.rows.size() >= 2 * stage.rows_max + 64) {
    sort_rows(stage, sort);
    size_t left = 0;
    for (const HeldRow& each : stage.rows) left += each.bytes;
    memory_bytes_ -= stage.rows_bytes - bytes;  // `bytes` was not added yet
    stage.rows_bytes = left;
    return use(left);
  }
  return use(bytes);
}

Result<bool> Pipeline::is_first(Stage& stage, const DedupCommand& dedup, const Row& row) {
  std::string key;
  for (const auto& each : dedup.keys) append_key(key, evaluate(*each, row, context_));
  const size_t bytes = key.size() + kSeenBytes;
  if (!stage.seen.insert(std::move(key)).second) return false;
  TRY(use(bytes));
  return true;
}

Result<std::vector<ResultRow>> Pipeline::finish() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    if (const auto* stats = std::get_if<StatsCommand>(stage.command)) {
      // Without groups there is one row, of no events.
      if (stage.groups.empty() && stats->groups.empty()) {
        stage.groups.emplace_back();
        stage.groups.back().accumulators.resize(stats->aggregates.size());
      }
      for (Group& group : stage.groups) {
        Row row = std::move(group.key);
        for (size_t k = 0; k < stats->aggregates.size(); ++k)
          row.set(stats->aggregates[k].name, group.accumulators[k].result(stats->aggregates[k]));
        TRY(push(i + 1, std::move(row)));
      }
      stage.groups.clear();
    } else if (const auto* sort = std::get_if<SortCommand>(stage.command)) {
      sort_rows(stage, *sort);
      std::vector<HeldRow> rows = std::move(stage.rows);
      for (HeldRow& held : rows) TRY(push(i + 1, std::move(held.row)));
    }
  }
  return std::move(results_);
}

Result<void> Pipeline::add_result(const Row& row) {
  if (results_.size() >= limits_.rows_max) {
    full_ = true;
    return ok();
  }
  ResultRow result;
  for (const std::string& name : columns_)
    if (const Value value = row.field(name); !value.nothing())
      result.emplace_back(name, value.text());
  if (shows_pointer_ && row.event()) result.emplace_back("@ptr", pointer_of(*row.event()));
  size_t bytes = sizeof result;
  for (const auto& [name, text] : result) bytes += sizeof result[0] + name.size() + text.size();
  TRY(use(bytes));
  results_.push_back(std::move(result));
  if (results_.size() >= limits_.rows_max && row.event() &&
      std::ranges::none_of(stages_,
                           [](const Stage& stage) { return holds_rows_back(*stage.command); }))
    full_ = true;
  return ok();
}

}  // namespace trainyard::insights
