#include "gradients/fusion/messages.hpp"

#include <type_traits>

#include "base/bytes/fields.hpp"

namespace trainyard::gradients {
namespace {

constexpr uint32_t kReportMagic = 0x31465954;  // "TYF1"
constexpr uint32_t kAnswerMagic = 0x32465954;  // "TYF2"

constexpr size_t kSignatureBytesMin = 56;
constexpr size_t kAgreementBytesMin = kSignatureBytesMin + 14;

// One description for encoding and decoding (base/bytes/fields.hpp).

template <class Side, class List>
void numbers(Side& side, const char* field, List& values) {
  side.list(field, values, sizeof(uint64_t), [&](auto& value) { side(field, value); });
}

// Rejects shapes whose number of elements is above kElementsMax; later code multiplies without
// checks.
void check_shape(FieldReader& reader, Signature& signature) {
  uint64_t elements = 1;
  for (const uint64_t dimension : signature.shape) {
    const uint64_t size = dimension == 0 ? 1 : dimension;
    if (__builtin_mul_overflow(elements, size, &elements) || elements > kElementsMax) {
      reader.refuse("shape", "has too many elements");
      signature.shape.clear();
      return;
    }
  }
}

template <class Side, class S>
void signature_fields(Side& side, S& signature) {
  side("name", signature.name);
  side.choice("operation", signature.operation, Operation(kOperationsCount - 1));
  side.choice("type", signature.type, collectives::Type(collectives::kTypesCount - 1));
  side.choice("reduction", signature.reduction,
              collectives::Reduction(collectives::kReductionsCount - 1));
  side("prescale", signature.prescale);
  side("postscale", signature.postscale);
  side("root", signature.root);
  side.choice("compression", signature.compression.kind, Compression::Kind(kCompressionsCount - 1));
  side("compression.rank", signature.compression.rank);
  side("priority", signature.priority);
  side("set", signature.set);
  side("group", signature.group);
  side("group_members", signature.group_members);
  numbers(side, "shape", signature.shape);
  numbers(side, "splits", signature.splits);
  if constexpr (!std::is_const_v<S>) check_shape(side, signature);
}

template <class Side, class A>
void agreement_fields(Side& side, A& agreement) {
  signature_fields(side, agreement.signature);
  numbers(side, "rows", agreement.rows);
  side("keep", agreement.keep);
  side("last", agreement.last);
  side("fault", agreement.fault);
  side("late", agreement.late);
}

template <class Side, class M>
void fields(Side& side, M& m) {
  if constexpr (std::is_same_v<std::remove_const_t<M>, Report>) {
    side("leaving", m.leaving);
    side.list("requests", m.requests, kSignatureBytesMin,
              [&](auto& request) { signature_fields(side, request); });
    side.list("waiting", m.waiting, 12, [&](auto& waiting) {
      side("waiting.key", waiting.key);
      side("waiting.milliseconds", waiting.milliseconds);
    });
  } else {
    side.list("ready", m.ready, kAgreementBytesMin,
              [&](auto& each) { agreement_fields(side, each); });
    side.list("forgotten", m.forgotten, 4, [&](auto& key) { side("forgotten", key); });
    side.list("leaving", m.leaving, 4, [&](auto& rank) { side("leaving", rank); });
    side.optional("settings", m.settings, [&](auto& settings) {
      side("settings.fusion_bytes", settings.fusion_bytes);
      side("settings.cycle_microseconds", settings.cycle_microseconds);
    });
    side("stalls", m.stalls);
  }
}

template <class M>
std::string encode_after(uint32_t magic, const M& message) {
  FieldWriter writer;
  writer("magic", magic);
  fields(writer, message);
  return std::move(writer.bytes);
}

template <class M>
Result<M> decode_after(uint32_t wanted, std::string_view bytes, const char* name) {
  FieldReader reader(bytes, name);
  uint32_t magic = 0;
  reader("magic", magic);
  if (magic != wanted) reader.refuse("magic", "belongs to another message");
  M message;
  fields(reader, message);
  TRY(reader.finish());
  return message;
}

}  // namespace

std::string encode(const Report& report) { return encode_after(kReportMagic, report); }
std::string encode(const Answer& answer) { return encode_after(kAnswerMagic, answer); }

Result<Report> decode_report(std::string_view bytes) {
  return decode_after<Report>(kReportMagic, bytes, "report");
}
Result<Answer> decode_answer(std::string_view bytes) {
  return decode_after<Answer>(kAnswerMagic, bytes, "answer");
}

}  // namespace trainyard::gradients
