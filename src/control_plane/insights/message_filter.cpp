#include "insights/message_filter.hpp"

#include <algorithm>

namespace trainyard::insights {
namespace {

constexpr std::string_view kMessage = "@message";

// True if only the message decides.
bool is_of_message(const Expression& condition) {
  if (condition.kind != Expression::Kind::operation) return false;
  switch (condition.operation) {
    case Operator::or_else:
    case Operator::and_also:
    case Operator::negate_condition:
      return std::ranges::all_of(condition.parts,
                                 [](const auto& part) { return is_of_message(*part); });
    case Operator::like:
    case Operator::not_like:
      return condition.parts[0]->kind == Expression::Kind::field &&
             condition.parts[0]->field == kMessage;
    default:
      return false;
  }
}

// Equals evaluate(). Requires: is_of_message(condition).
bool holds(const Expression& condition, std::string_view message) {
  const auto part = [&](size_t i) { return holds(*condition.parts[i], message); };
  switch (condition.operation) {
    case Operator::or_else:
      return part(0) || part(1);
    case Operator::and_also:
      return part(0) && part(1);
    case Operator::negate_condition:
      return !part(0);
    default:
      return condition.pattern->found_in(message) == (condition.operation == Operator::like);
  }
}

void add_conditions(const Expression& condition, std::vector<const Expression*>& found) {
  if (is_of_message(condition)) {
    found.push_back(&condition);
  } else if (condition.kind == Expression::Kind::operation &&
             condition.operation == Operator::and_also) {
    for (const auto& part : condition.parts) add_conditions(*part, found);
  }
}

// True if the columns give @message another value.
bool sets_message(const std::vector<Column>& columns) {
  return std::ranges::any_of(columns, [](const Column& column) {
    return column.name == kMessage && (column.expression->kind != Expression::Kind::field ||
                                       column.expression->field != kMessage);
  });
}

// True if the command passes all rows on with the messages of their events.
bool keeps_messages(const Command& command) {
  if (const auto* fields = std::get_if<FieldsCommand>(&command))
    return !sets_message(fields->columns);
  if (const auto* display = std::get_if<DisplayCommand>(&command))
    return !sets_message(display->columns);
  if (const auto* parse = std::get_if<ParseCommand>(&command))
    return std::ranges::find(parse->names, kMessage) == parse->names.end();
  return false;
}

}  // namespace

observe::ChooseMessage message_filter(std::shared_ptr<const Query> query) {
  std::vector<const Expression*> conditions;
  for (const Command& command : query->commands) {
    if (const auto* filter = std::get_if<FilterCommand>(&command))
      add_conditions(*filter->condition, conditions);
    else if (!keeps_messages(command))
      break;
  }
  if (conditions.empty()) return nullptr;
  return [query = std::move(query), conditions = std::move(conditions)](std::string_view message) {
    return std::ranges::all_of(
        conditions, [&](const Expression* condition) { return holds(*condition, message); });
  };
}

}  // namespace trainyard::insights
