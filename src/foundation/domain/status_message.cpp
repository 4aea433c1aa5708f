#include "domain/status_message.hpp"

#include "base/text.hpp"

namespace trainyard::domain {

std::string with_note(std::string message, std::string_view note) {
  if (note.empty()) return message;
  if (message.empty()) return std::string(note);
  if (!message.ends_with('.') && !message.ends_with('!')) message += '.';
  message += ' ';
  message += note;
  return message;
}

std::string without_note(std::string message, std::string_view note) {
  if (note.empty() || !message.ends_with(note)) return message;
  message.resize(message.size() - note.size());
  return std::string(trim(message));
}

}  // namespace trainyard::domain
