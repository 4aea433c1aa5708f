#include "domain/record.hpp"

#include "base/json_record.hpp"

namespace trainyard::domain {
namespace {

Result<void> check(const RecordWrite& write) {
  const auto& [kind, name] = write.key;
  if (kind.empty() || name.empty() || kind.size() + name.size() > kRecordNameBytesMax)
    return invalid("invalid record name: it must have 1 to " + std::to_string(kRecordNameBytesMax) +
                   " bytes");
  if (!write.document) return {};
  if (!write.document->is_object())
    return invalid("invalid record " + kind + "/" + name + ": not an object");
  if (dump(*write.document).size() > kRecordBytesMax)
    return exhausted("the record " + kind + "/" + name + " has more than " +
                     std::to_string(kRecordBytesMax) + " bytes");
  return {};
}

constexpr auto kRecordWrite = json_record<RecordWrite>("record", [](auto& side, auto& write) {
  side("kind", write.key.first);
  side("name", write.key.second);
  side.if_set("document", write.document);
});

}  // namespace

Result<Records> changed(const Records& records, const std::vector<RecordWrite>& writes) {
  if (writes.size() > kRecordWritesMax)
    return exhausted("one change has more than " + std::to_string(kRecordWritesMax) + " records");
  Records next = records;
  ++next.version;
  for (const RecordWrite& write : writes) {
    TRY(check(write));
    if (!write.document) {
      next.all.erase(write.key);
      continue;
    }
    auto& place = next.all[write.key];
    place = std::make_shared<const Record>(
        Record{place ? place->revision + 1 : uint64_t{1}, *write.document});
  }
  if (next.all.size() > kRecordsMax)
    return exhausted("the ledger has more than " + std::to_string(kRecordsMax) + " records");
  return next;
}

Json to_json(const RecordWrite& write) { return kRecordWrite.write(write); }
Result<RecordWrite> record_write_from_json(const Json& json) { return kRecordWrite.read(json); }

}  // namespace trainyard::domain
