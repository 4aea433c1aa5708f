#include "wire/shell.hpp"

#include "base/bytes/little_endian.hpp"

namespace trainyard::wire {
namespace {

enum class ShellKind : uint8_t { input = 1, input_ends, resize, output, ended, credit };

Error invalid_frame(const char* what) {
  return corrupt(std::string("invalid frame of a shell: ") + what);
}

}  // namespace

std::string encode_shell_payload(const ShellFrame& frame) {
  std::string out;
  const auto begin = [&](ShellKind kind) { out += char(kind); };
  if (const auto* input = std::get_if<ShellInput>(&frame)) {
    begin(ShellKind::input);
    out += input->bytes;
  } else if (std::holds_alternative<ShellInputEnds>(frame)) {
    begin(ShellKind::input_ends);
  } else if (const auto* resize = std::get_if<ShellResize>(&frame)) {
    begin(ShellKind::resize);
    append_little_endian(out, resize->columns, 4);
    append_little_endian(out, resize->rows, 4);
  } else if (const auto* output = std::get_if<ShellOutput>(&frame)) {
    begin(ShellKind::output);
    out += output->bytes;
  } else if (const auto* ended = std::get_if<ShellEnded>(&frame)) {
    begin(ShellKind::ended);
    append_little_endian(out, uint32_t(ended->exit_code), 4);
    out += ended->reason.substr(0, kShellBytesMax);
  } else if (const auto* credit = std::get_if<ShellCredit>(&frame)) {
    begin(ShellKind::credit);
    append_little_endian(out, credit->bytes, 4);
  }
  return out;
}

std::string encode_shell(const ShellFrame& frame) {
  const std::string payload = encode_shell_payload(frame);
  std::string out;
  append_little_endian(out, uint32_t(payload.size()), 4);
  return out + payload;
}

Result<ShellFrame> decode_shell_payload(std::string_view payload) {
  if (payload.empty()) return invalid_frame("it is empty");
  if (payload.size() > kShellFrameBytesMax) return invalid_frame("it is too long");
  const std::string_view body = payload.substr(1);
  const auto numbers = [&](size_t count) { return body.size() == 4 * count; };
  switch (ShellKind(uint8_t(payload[0]))) {
    case ShellKind::input:
      return ShellFrame(ShellInput{std::string(body)});
    case ShellKind::input_ends:
      if (!body.empty()) return invalid_frame("an end of input must have no body");
      return ShellFrame(ShellInputEnds{});
    case ShellKind::resize: {
      if (!numbers(2)) return invalid_frame("a size must be two numbers");
      const ShellResize resize{little_endian_u32(body), little_endian_u32(body.substr(4))};
      if (resize.columns == 0 || resize.rows == 0 || resize.columns > kShellSideMax ||
          resize.rows > kShellSideMax)
        return invalid_frame("invalid terminal size");
      return ShellFrame(resize);
    }
    case ShellKind::output:
      return ShellFrame(ShellOutput{std::string(body)});
    case ShellKind::ended:
      if (body.size() < 4) return invalid_frame("an end must have an exit code");
      return ShellFrame(ShellEnded{int(little_endian_u32(body)), std::string(body.substr(4))});
    case ShellKind::credit:
      if (!numbers(1)) return invalid_frame("a credit must be one number");
      if (little_endian_u32(body) > kShellWindowBytes)
        return invalid_frame("a credit is larger than the window");
      return ShellFrame(ShellCredit{little_endian_u32(body)});
  }
  return invalid_frame("unknown kind");
}

Result<std::optional<ShellFrame>> ShellDecoder::next() {
  if (buffer_.size() < 4) return std::optional<ShellFrame>();
  const uint32_t length = little_endian_u32(buffer_);
  if (length > kShellFrameBytesMax) return invalid_frame("its length exceeds the limit");
  if (buffer_.size() - 4 < length) return std::optional<ShellFrame>();
  auto frame = TRY(decode_shell_payload(std::string_view(buffer_).substr(4, length)));
  buffer_.erase(0, 4 + size_t(length));
  return std::optional<ShellFrame>(std::move(frame));
}

}  // namespace trainyard::wire
