#include "rabit/worker_message.hpp"

#include <cstring>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::rabit {
namespace {

constexpr size_t kTextShown = 64;
constexpr std::pair<std::string_view, Command> kCommands[] = {{"start", Command::start},
                                                              {"recover", Command::recover},
                                                              {"print", Command::print},
                                                              {"shutdown", Command::shutdown}};

// Reads fields of a buffer, which may end before them.
class PartReader {
 public:
  explicit PartReader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<int32_t> integer() {
    if (bytes_.size() - at_ < sizeof(int32_t)) return {};
    int32_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  Result<std::optional<std::string>> text(const char* field, size_t bytes_max) {
    const auto length = integer();
    if (!length) return std::optional<std::string>();
    if (*length < 0 || size_t(*length) > bytes_max)
      return corrupt(std::string(field) + ": a length of " + std::to_string(*length) +
                     " is not from 0 to " + std::to_string(bytes_max));
    if (bytes_.size() - at_ < size_t(*length)) return std::optional<std::string>();
    at_ += size_t(*length);
    return std::optional(std::string(bytes_.substr(at_ - size_t(*length), size_t(*length))));
  }
  size_t at() const { return at_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

Result<Command> parse_command(std::string_view text) {
  for (const auto& [name, command] : kCommands)
    if (name == text) return command;
  return corrupt("unknown command '" + shorten(to_utf8(text), kTextShown) + "'");
}

Result<void> check_numbers(const WorkerMessage& message) {
  if (message.rank < -1 || message.rank >= kWorkersMax)
    return corrupt("rank: " + std::to_string(message.rank) + " is out of range");
  if (message.world_size < -1 || message.world_size > kWorkersMax || message.world_size == 0)
    return corrupt("world size: " + std::to_string(message.world_size) + " is out of range");
  return ok();
}

}  // namespace

std::string encode_integer(int32_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string encode_text(std::string_view text) {
  return encode_integer(int32_t(text.size())) + std::string(text);
}

std::string encode(const WorkerMessage& message) {
  std::string bytes = encode_integer(kMagic) + encode_integer(message.rank) +
                      encode_integer(message.world_size) + encode_text(message.task_id);
  for (const auto& [name, command] : kCommands)
    if (command == message.command) bytes += encode_text(name);
  return message.command == Command::print ? bytes + encode_text(message.text) : bytes;
}

Result<std::optional<WorkerMessage>> WorkerMessageDecoder::push(std::string_view bytes) {
  CHECK(end_ == 0, "a connection has one message");
  buffer_ += bytes;
  PartReader reader(buffer_);
  const std::optional<WorkerMessage> incomplete;
  const auto magic = reader.integer();
  if (!magic) return incomplete;
  if (*magic != kMagic) return corrupt("invalid magic number " + std::to_string(*magic));
  WorkerMessage message;
  const auto rank = reader.integer();
  const auto size = reader.integer();
  if (!rank || !size) return incomplete;
  message.rank = *rank;
  message.world_size = *size;
  TRY(check_numbers(message));
  auto task_id = TRY(reader.text("task id", kTaskIdBytesMax));
  if (!task_id) return incomplete;
  message.task_id = to_utf8(*task_id);
  const auto command = TRY(reader.text("command", kCommandBytesMax));
  if (!command) return incomplete;
  message.command = TRY(parse_command(*command));
  if (message.command == Command::print) {
    const auto text = TRY(reader.text("text", kPrintBytesMax));
    if (!text) return incomplete;
    message.text = to_utf8(*text);
  }
  end_ = reader.at();
  return std::optional(std::move(message));
}

}  // namespace trainyard::rabit
