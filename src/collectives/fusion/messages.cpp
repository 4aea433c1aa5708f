#include "collectives/fusion/messages.hpp"

#include <cstring>

namespace trainyard::collectives::fusion {
namespace {

constexpr uint32_t report_magic = 0x31465954;  // "TYF1"
constexpr uint32_t answer_magic = 0x32465954;  // "TYF2"

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    number(uint32_t(text.size()));
    bytes_.append(text);
  }
  template <class Item, class Write>
  void list(const std::vector<Item>& items, const Write& write) {
    number(uint32_t(items.size()));
    for (const Item& item : items) write(item);
  }
  void numbers(const std::vector<uint64_t>& values) {
    list(values, [&](uint64_t value) { number(value); });
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first fault everything reads as nothing, and the fault is what remains.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number(std::string_view field) {
    Number value{};
    if (rest_.size() < sizeof value) {
      fail(field, "ends too early");
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text(std::string_view field) {
    const auto length = number<uint32_t>(field);
    if (length > rest_.size()) {
      fail(field, "is longer than its message");
      return {};
    }
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }
  template <class Enum>
  Enum one_of(std::string_view field, int count) {
    const auto value = number<uint8_t>(field);
    if (value >= count) fail(field, "is none that is known");
    return Enum(value < count ? value : 0);
  }
  bool flag(std::string_view field) { return one_of<uint8_t>(field, 2) != 0; }
  // item_bytes: the fewest that an item can have.
  template <class Item, class Read>
  std::vector<Item> list(std::string_view field, size_t item_bytes, const Read& read) {
    const auto count = number<uint32_t>(field);
    std::vector<Item> items;
    if (uint64_t{count} * item_bytes > rest_.size()) {
      fail(field, "announces more than its message holds");
      return items;
    }
    items.reserve(count);
    for (uint32_t i = 0; i < count && why_.empty(); ++i) items.push_back(read());
    return items;
  }
  std::vector<uint64_t> numbers(std::string_view field) {
    return list<uint64_t>(field, sizeof(uint64_t), [&] { return number<uint64_t>(field); });
  }
  void fail(std::string_view field, std::string_view what) {
    if (why_.empty()) why_.append(field).append(" ").append(what);
    rest_ = {};
  }
  Result<void> end() {
    if (why_.empty() && !rest_.empty()) fail("the message", "has bytes after its end");
    if (!why_.empty()) return corrupt(why_);
    return ok();
  }

 private:
  std::string_view rest_;
  std::string why_;
};

constexpr size_t signature_bytes_min = 56;
constexpr size_t agreement_bytes_min = signature_bytes_min + 14;

void write(Writer& writer, const Signature& signature) {
  writer.text(signature.name);
  writer.number(uint8_t(signature.operation));
  writer.number(uint8_t(signature.type));
  writer.number(uint8_t(signature.reduction));
  writer.number(signature.prescale);
  writer.number(signature.postscale);
  writer.number(int32_t(signature.root));
  writer.number(uint8_t(signature.compression.kind));
  writer.number(signature.compression.rank);
  writer.number(int32_t(signature.priority));
  writer.number(int32_t(signature.set));
  writer.text(signature.group);
  writer.number(signature.group_members);
  writer.numbers(signature.shape);
  writer.numbers(signature.splits);
}

Signature read_signature(Reader& reader) {
  Signature signature;
  signature.name = reader.text("a name");
  signature.operation = reader.one_of<Operation>("an operation", operations_count);
  signature.type = reader.one_of<Type>("a type", types_count);
  signature.reduction = reader.one_of<Reduction>("a reduction", reductions_count);
  signature.prescale = reader.number<double>("a prescale");
  signature.postscale = reader.number<double>("a postscale");
  signature.root = reader.number<int32_t>("a root");
  signature.compression.kind = reader.one_of<Compression::Kind>("a compression", compressions_count);
  signature.compression.rank = reader.number<uint32_t>("a compression's rank");
  signature.priority = reader.number<int32_t>("a priority");
  signature.set = reader.number<int32_t>("a set");
  signature.group = reader.text("a group");
  signature.group_members = reader.number<uint32_t>("a group's members");
  signature.shape = reader.numbers("a shape");
  signature.splits = reader.numbers("splits");
  // What does not fit a size_t is no tensor; later code multiplies without asking.
  uint64_t elements = 1;
  for (const uint64_t dimension : signature.shape) {
    const uint64_t size = dimension == 0 ? 1 : dimension;
    if (__builtin_mul_overflow(elements, size, &elements) || elements > elements_max) {
      reader.fail("a shape", "has more elements than any memory");
      signature.shape.clear();
      break;
    }
  }
  return signature;
}

void write(Writer& writer, const Agreement& agreement) {
  write(writer, agreement.signature);
  writer.numbers(agreement.rows);
  writer.number(uint8_t(agreement.keep));
  writer.number(int32_t(agreement.last));
  writer.text(agreement.fault);
  writer.number(uint8_t(agreement.late));
}

Agreement read_agreement(Reader& reader) {
  Agreement agreement;
  agreement.signature = read_signature(reader);
  agreement.rows = reader.numbers("rows");
  agreement.keep = reader.flag("keep");
  agreement.last = reader.number<int32_t>("the last to join");
  agreement.fault = reader.text("a fault");
  agreement.late = reader.flag("late");
  return agreement;
}

}  // namespace

std::string encode(const Report& report) {
  Writer writer;
  writer.number(report_magic);
  writer.number(uint8_t(report.leaving));
  writer.list(report.asks, [&](const Signature& signature) { write(writer, signature); });
  writer.list(report.waiting, [&](const Waiting& waiting) {
    writer.text(waiting.key);
    writer.number(waiting.milliseconds);
  });
  return writer.take();
}

std::string encode(const Answer& answer) {
  Writer writer;
  writer.number(answer_magic);
  writer.list(answer.ready, [&](const Agreement& agreement) { write(writer, agreement); });
  writer.list(answer.forgotten, [&](const std::string& key) { writer.text(key); });
  writer.list(answer.leaving, [&](uint32_t rank) { writer.number(rank); });
  writer.number(uint8_t(answer.settings.has_value()));
  if (answer.settings) {
    writer.number(answer.settings->fusion_bytes);
    writer.number(answer.settings->cycle_microseconds);
  }
  writer.text(answer.stalls);
  return writer.take();
}

Result<Report> decode_report(std::string_view bytes) {
  Reader reader(bytes);
  Report report;
  if (reader.number<uint32_t>("the magic") != report_magic) reader.fail("the magic", "is not a report's");
  report.leaving = reader.flag("leaving");
  report.asks = reader.list<Signature>("asks", signature_bytes_min, [&] { return read_signature(reader); });
  report.waiting = reader.list<Waiting>("waiting", sizeof(uint32_t) + sizeof(uint64_t), [&] {
    Waiting waiting;
    waiting.key = reader.text("a key");
    waiting.milliseconds = reader.number<uint64_t>("how long");
    return waiting;
  });
  TRY(reader.end().in("a report"));
  return report;
}

Result<Answer> decode_answer(std::string_view bytes) {
  Reader reader(bytes);
  Answer answer;
  if (reader.number<uint32_t>("the magic") != answer_magic) reader.fail("the magic", "is not an answer's");
  answer.ready = reader.list<Agreement>("ready", agreement_bytes_min, [&] { return read_agreement(reader); });
  answer.forgotten =
      reader.list<std::string>("forgotten", sizeof(uint32_t), [&] { return reader.text("a key"); });
  answer.leaving =
      reader.list<uint32_t>("leaving", sizeof(uint32_t), [&] { return reader.number<uint32_t>("a rank"); });
  if (reader.flag("settings")) {
    Settings settings;
    settings.fusion_bytes = reader.number<uint64_t>("fusion bytes");
    settings.cycle_microseconds = reader.number<uint32_t>("the cycle");
    answer.settings = settings;
  }
  answer.stalls = reader.text("stalls");
  TRY(reader.end().in("an answer"));
  return answer;
}

}  // namespace trainyard::collectives::fusion
