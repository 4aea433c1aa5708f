#include "ledger/job_reader.hpp"

#include "base/json.hpp"
#include "base/log.hpp"

namespace trainyard::ledger {
namespace {

using sqlite::Statement;

Result<domain::JobSpec> spec_of(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return corrupt("ledger: a job's spec is not JSON");
  auto spec = domain::job_spec_from_json(*json);
  if (!spec) return corrupt("ledger: a job's spec: " + spec.error().message);
  return spec;
}

}  // namespace

JobReader::JobReader(sqlite::Connection& connection)
    : JobReader([&connection](int64_t number) -> Result<std::optional<std::string>> {
        Statement rows = TRY(connection.prepare("SELECT spec FROM jobs WHERE number = ?"));
        rows.bind(number);
        if (!TRY(rows.step())) return std::optional<std::string>();
        return std::optional(rows.text(0));
      }) {}

Result<domain::Job> JobReader::read(const Statement& row) {
  return read(row.text(0), row.text(1), row.integer(2));
}

Result<domain::Job> JobReader::read(const std::string& spec, const std::string& text,
                                    int64_t parent) {
  const auto progress = parse_json(text);
  if (!progress) return corrupt("ledger: a job's record is not JSON");
  auto job = domain::job_from_json(*progress);
  if (!job) return corrupt("ledger: a job's record: " + job.error().message);
  if (parent == 0)
    job->spec = TRY(spec_of(spec));
  else
    job->spec = TRY(spec_of_array(parent));
  job->use_selected();
  return job;
}

Result<std::vector<domain::Job>> JobReader::read_all(Statement& rows) {
  std::vector<domain::Job> jobs;
  while (TRY(rows.step())) {
    auto job = read(rows);
    if (job)
      jobs.push_back(*std::move(job));
    else
      log(Level::error, "ledger", "a record cannot be read", {{"why", job.error().message}});
  }
  return jobs;
}

Result<domain::JobSpec> JobReader::spec_of_array(int64_t number) {
  if (number == array_) return spec_;
  const auto spec = TRY(read_spec_(number));
  if (!spec) return corrupt("ledger: the array " + std::to_string(number) + " is missing");
  spec_ = TRY(spec_of(*spec));
  array_ = number;
  return spec_;
}

Result<ResourceRecord> resource_of(ResourceRecord record, const std::string& body) {
  auto json = parse_json(body);
  if (!json) return corrupt("ledger: the record of a " + record.kind + " is not JSON");
  record.body = *std::move(json);
  return record;
}

Result<ResourceRecord> resource_of(const Statement& row) {
  return resource_of(
      {row.text(0), {row.text(1), row.text(2)}, uint32_t(row.integer(3)), row.integer(4) != 0, {}},
      row.text(5));
}

Result<domain::Record> record_of(const domain::RecordKey& key, int64_t revision,
                                 const std::string& text) {
  auto body = parse_json(text);
  const std::string name = "ledger: the record " + key.first + "/" + key.second;
  if (!body || !body->is_object()) return corrupt(name + " is not a JSON object");
  if (revision < 1) return corrupt(name + " has the revision " + std::to_string(revision));
  return domain::Record{uint64_t(revision), *std::move(body)};
}

Result<domain::Record> record_of(const Statement& row) {
  return record_of({row.text(0), row.text(1)}, row.integer(2), row.text(3));
}

Result<std::vector<domain::Tag>> tags_of(const std::string& arn, const std::string& text) {
  std::vector<domain::Tag> tags;
  const auto json = parse_json(text);
  if (!json || !json->is_array()) return corrupt("ledger: the tags of " + arn + " are not a list");
  for (const Json& each : *json) {
    auto tag = domain::tag_from_json(each);
    if (!tag) return corrupt("ledger: the tags of " + arn + ": " + tag.error().message);
    tags.push_back(*std::move(tag));
  }
  return tags;
}

std::string text_of(const std::vector<domain::Tag>& tags) {
  Json list = Json::array();
  for (const domain::Tag& tag : tags) list.push_back(to_json(tag));
  return dump(list);
}

Result<CommandRecord> command_of(int64_t sequence, int64_t at, std::string kind,
                                 const std::string& text) {
  auto body = parse_json(text);
  if (!body)
    return corrupt("ledger: command " + std::to_string(sequence) + ": " + body.error().message);
  return CommandRecord{uint64_t(sequence), from_milliseconds(at), std::move(kind),
                       *std::move(body)};
}

Result<domain::Records> records_of(sqlite::Connection& connection) {
  Statement rows = TRY(connection.prepare_once("SELECT kind, name, revision, body FROM records"));
  domain::Records records;
  while (TRY(rows.step()))
    records.all[{rows.text(0), rows.text(1)}] =
        std::make_shared<const domain::Record>(TRY(record_of(rows)));
  return records;
}

}  // namespace trainyard::ledger
