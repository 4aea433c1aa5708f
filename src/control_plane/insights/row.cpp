#include "insights/row.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::insights {
namespace {

Value value_of(const Json& json) {
  if (json.is_string()) return Value::of_text(json.get<std::string>());
  if (json.is_boolean()) return Value::of_text(json.get<bool>() ? "true" : "false");
  if (json.is_number()) return Value::of_number(json.get<double>());
  return {};
}

// parse_json limits the depth, so the recursion is limited.
void flatten(const Json& json, const std::string& name, std::map<std::string, Value>& fields) {
  if (fields.size() >= kFieldsMax) return;
  if (json.is_object() || json.is_array()) {
    size_t index = 0;
    for (auto part = json.begin(); part != json.end(); ++part, ++index) {
      if (fields.size() >= kFieldsMax) return;
      const std::string own = json.is_object() ? part.key() : std::to_string(index);
      flatten(*part, name.empty() ? own : name + "." + own, fields);
    }
    return;
  }
  if (Value value = value_of(json); !value.nothing()) fields.emplace(name, std::move(value));
}

Value own_field(const Event& event, const std::string& name) {
  if (name == "@message") return Value::of_text(event.message);
  if (name == "@timestamp") return Value::of_instant(double(event.at));
  if (name == "@ingestionTime") return Value::of_instant(double(event.ingested));
  if (name == "@logStream") return Value::of_text(event.stream);
  if (name == "@log") return Value::of_text(event.log);
  if (name == "@ptr") return Value::of_text(pointer_of(event));
  return {};
}

Value condition_of(const std::optional<std::weak_ordering>& order, bool less, bool equal,
                   bool greater) {
  if (!order) return Value::of_condition(false);
  return Value::of_condition((less && *order < 0) || (equal && *order == 0) ||
                             (greater && *order > 0));
}

Value compared(Operator operation, const Value& a, const Value& b) {
  const auto order = compare(a, b);
  switch (operation) {
    case Operator::equal:
      return condition_of(order, false, true, false);
    case Operator::not_equal:
      return condition_of(order, true, false, true);
    case Operator::less:
      return condition_of(order, true, false, false);
    case Operator::at_most:
      return condition_of(order, true, true, false);
    case Operator::greater:
      return condition_of(order, false, false, true);
    default:
      return condition_of(order, false, true, true);
  }
}

Value computed(Operator operation, const Value& a, const Value& b) {
  const auto left = a.number(), right = b.number();
  if (!left || !right) return {};
  switch (operation) {
    case Operator::add:
      return Value::of_number(*left + *right);
    case Operator::subtract:
      return Value::of_number(*left - *right);
    case Operator::multiply:
      return Value::of_number(*left * *right);
    case Operator::divide:
      return *right == 0 ? Value() : Value::of_number(*left / *right);
    case Operator::remainder:
      return *right == 0 ? Value() : Value::of_number(std::fmod(*left, *right));
    default:
      return Value::of_number(std::pow(*left, *right));
  }
}

Value listed(const Expression& expression, const Row& row, const CallContext& context) {
  const Value value = evaluate(*expression.parts[0], row, context);
  bool found = false;
  for (size_t i = 1; i < expression.parts.size() && !found; ++i)
    found = compare(value, evaluate(*expression.parts[i], row, context)) ==
            std::weak_ordering::equivalent;
  return Value::of_condition(found == (expression.operation == Operator::in_list));
}

Value operated(const Expression& expression, const Row& row, const CallContext& context) {
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i], row, context); };
  switch (expression.operation) {
    case Operator::or_else:
      return Value::of_condition(part(0).holds() || part(1).holds());
    case Operator::and_also:
      return Value::of_condition(part(0).holds() && part(1).holds());
    case Operator::negate_condition:
      return Value::of_condition(!part(0).holds());
    case Operator::like:
    case Operator::not_like: {
      const Value value = part(0);
      const bool found = !value.nothing() && expression.pattern->found_in(value.text());
      return Value::of_condition(found == (expression.operation == Operator::like));
    }
    case Operator::in_list:
    case Operator::not_in_list:
      return listed(expression, row, context);
    case Operator::negate_number: {
      const auto number = part(0).number();
      return number ? Value::of_number(-*number) : Value();
    }
    case Operator::equal:
    case Operator::not_equal:
    case Operator::less:
    case Operator::at_most:
    case Operator::greater:
    case Operator::at_least:
      return compared(expression.operation, part(0), part(1));
    default:
      return computed(expression.operation, part(0), part(1));
  }
}

}  // namespace

std::string pointer_of(const Event& event) {
  return to_base64(dump(Json::array({event.group, event.stream, event.position})));
}

Value Row::field(const std::string& name) const {
  const auto cell =
      std::ranges::find_if(cells_, [&](const Cell& each) { return each.first == name; });
  if (cell != cells_.end()) return cell->second;
  if (!event_) return {};
  if (name.starts_with('@')) return own_field(*event_, name);
  const auto& fields = discovered();
  const auto found = fields.find(name);
  return found == fields.end() ? Value() : found->second;
}

void Row::set(const std::string& name, Value value) {
  const auto cell =
      std::ranges::find_if(cells_, [&](const Cell& each) { return each.first == name; });
  if (cell != cells_.end())
    cell->second = std::move(value);
  else
    cells_.emplace_back(name, std::move(value));
}

size_t Row::bytes() const {
  size_t bytes = sizeof(Row);
  for (const Cell& cell : cells_) bytes += sizeof cell + cell.first.size() + cell.second.bytes();
  if (event_) bytes += sizeof(Event) + event_->message.size();
  // A discovered field costs some 100 bytes on top of its text, which the message has, too.
  if (discovered_) bytes += event_->message.size() + 100 * discovered_->size();
  return bytes;
}

const std::map<std::string, Value>& Row::discovered() const {
  if (!discovered_)
    discovered_ =
        std::make_shared<const std::map<std::string, Value>>(discover_fields(event_->message));
  return *discovered_;
}

std::map<std::string, Value> discover_fields(std::string_view message) {
  std::map<std::string, Value> fields;
  if (message.size() > kDiscoveredBytesMax || !trim(message).starts_with('{')) return fields;
  if (const auto json = parse_json(message)) flatten(*json, "", fields);
  return fields;
}

Value evaluate(const Expression& expression, const Row& row, const CallContext& context) {
  switch (expression.kind) {
    case Expression::Kind::constant:
      return expression.constant;
    case Expression::Kind::field:
      return row.field(expression.field);
    case Expression::Kind::operation:
      return operated(expression, row, context);
    case Expression::Kind::call:
      break;
  }
  std::vector<Value> arguments;
  arguments.reserve(expression.parts.size());
  for (const auto& part : expression.parts) arguments.push_back(evaluate(*part, row, context));
  return expression.function->call(arguments, context);
}

}  // namespace trainyard::insights
