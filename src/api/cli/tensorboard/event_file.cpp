#include "cli/tensorboard/event_file.hpp"

#include <bit>
#include <cmath>

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/text.hpp"

namespace trainyard::cli::tensorboard {
namespace {

constexpr std::string_view kVersion = "brain.Event:2";
constexpr std::string_view kHyperparameters = "hparams";  // the name of the plugin
constexpr uint64_t kSuccess = 1, kFailure = 2;            // of hparams' Status

// Appends fields of a protocol buffer.
class Fields {
 public:
  Fields& number(uint32_t field, uint64_t value) {
    tag(field, 0);
    variable(value);
    return *this;
  }
  Fields& real(uint32_t field, double value) {
    tag(field, 1);
    append_little_endian(bytes_, std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Fields& short_real(uint32_t field, float value) {
    tag(field, 5);
    append_little_endian(bytes_, std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  Fields& text(uint32_t field, std::string_view value) {
    tag(field, 2);
    variable(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(uint32_t field, uint32_t type) { variable(field << 3 | type); }
  void variable(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += char(uint8_t(value | 0x80));
    bytes_ += char(uint8_t(value));
  }

  std::string bytes_;
};

std::string masked_checksum(std::string_view bytes) {
  const uint32_t sum = Crc32c::of(bytes);
  std::string out;
  append_little_endian(out, uint32_t(std::rotr(sum, 15) + 0xa282ead8), 4);
  return out;
}

std::string record(std::string_view bytes) {
  std::string length;
  append_little_endian(length, bytes.size(), 8);
  return length + masked_checksum(length) + std::string(bytes) + masked_checksum(bytes);
}

Fields event_at(Instant at) {
  Fields event;
  event.real(1, to_seconds(at));
  return event;
}

// An event with one value of a summary.
std::string summary_record(Instant at, int64_t step, const Fields& value) {
  Fields event = event_at(at);
  if (step != 0) event.number(2, uint64_t(step));
  return record(event.text(5, Fields().text(1, value.bytes()).bytes()).bytes());
}

// A value without a number, whose content only the plugin reads.
std::string plugin_record(Instant at, std::string_view tag, const Fields& content) {
  const Fields plugin = Fields().text(1, kHyperparameters).text(2, content.bytes());
  const Fields metadata = Fields().text(1, plugin.bytes());
  return summary_record(at, 0, Fields().text(1, tag).text(9, metadata.bytes()));
}

// A google.protobuf.Value.
Fields hyperparameter(const std::string& text) {
  const auto number = parse_double(text);
  return number && std::isfinite(*number) ? Fields().real(2, *number) : Fields().text(3, text);
}

}  // namespace

std::string start_record(Instant at) { return record(event_at(at).text(3, kVersion).bytes()); }

std::string scalar_record(Instant at, int64_t step, std::string_view metric, double value) {
  return summary_record(at, step, Fields().text(1, metric).short_real(2, float(value)));
}

std::string hyperparameters_record(Instant started, std::string_view group,
                                   const std::map<std::string, std::string>& values) {
  Fields session;
  for (const auto& [name, value] : values)
    session.text(1, Fields().text(1, name).text(2, hyperparameter(value).bytes()).bytes());
  session.text(4, group).real(5, to_seconds(started));
  return plugin_record(started, "_hparams_/session_start_info", Fields().text(3, session.bytes()));
}

std::string end_record(Instant at, bool succeeded) {
  const Fields session =
      Fields().number(1, succeeded ? kSuccess : kFailure).real(2, to_seconds(at));
  return plugin_record(at, "_hparams_/session_end_info", Fields().text(4, session.bytes()));
}

}  // namespace trainyard::cli::tensorboard
