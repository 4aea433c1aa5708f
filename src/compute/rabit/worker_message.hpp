// Decodes the first message of each connection of a worker.
//
//   magic 0xff99 | rank | world size | task id | command [| text]      i32 in the order of the machine
//
// A text is its length and its bytes. The commands are start, recover, print (which has a text) and
// shutdown. The tracker answers the magic number before the rest arrives.
//
// Threads: confined to one. Errors: corrupt, naming the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::rabit {

inline constexpr int32_t kMagic = 0xff99;
inline constexpr size_t kTaskIdBytesMax = 1024;
inline constexpr size_t kCommandBytesMax = 16;
inline constexpr size_t kPrintBytesMax = 64 << 10;
// more than a tracker can connect before its deadline
inline constexpr int32_t kWorkersMax = 10'000;

enum class Command : uint8_t { start, recover, print, shutdown };

struct WorkerMessage {
  int32_t rank = -1;        // -1: none yet
  int32_t world_size = -1;  // -1: as configured in the tracker
  std::string task_id;      // "NULL": none
  Command command = Command::start;
  std::string text;  // set for the command print
};

// Encode an integer and a text, in the format that both sides use.
std::string encode_integer(int32_t value);
std::string encode_text(std::string_view text);
std::string encode(const WorkerMessage& message);  // for tests

class WorkerMessageDecoder {
 public:
  // Adds the next bytes of a connection. Returns the message when it is complete; the bytes after
  // it are in rest().
  Result<std::optional<WorkerMessage>> push(std::string_view bytes);
  // Returns true if the magic number has arrived.
  bool has_magic() const { return buffer_.size() >= sizeof(int32_t); }
  std::string_view rest() const { return std::string_view(buffer_).substr(end_); }

 private:
  std::string buffer_;
  size_t end_ = 0;
};

}  // namespace trainyard::rabit
