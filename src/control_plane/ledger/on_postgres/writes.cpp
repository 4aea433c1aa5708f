#include "ledger/on_postgres/writes.hpp"

#include <string>

#include "domain/stage.hpp"
#include "ledger/job_reader.hpp"
#include "ledger/tables.hpp"

namespace trainyard::ledger::on_postgres {
namespace {

using postgres::Query;

Query command_write(const CommandRecord& command) {
  return {
      "INSERT INTO commands (sequence, at, kind, body) VALUES ($1, $2, $3, $4)",
      {int64_t(command.sequence), to_milliseconds(command.at), command.kind, dump(command.body)}};
}

int64_t stage_number(const domain::Job& job) {
  return job.spec.queue ? int64_t(domain::stage_of(job)) : kNoStage;
}

Query job_update(const domain::Job& job) {
  return {
      "UPDATE jobs SET state = $1, live = $2, status_order = $3, modified = $4, progress = $5, "
      "batch_status = $6 WHERE number = $7",
      {std::string(to_string(job.state)), int64_t(job.live()), status_order(job.state),
       to_milliseconds(job.modified), dump(progress_json(job)), stage_number(job),
       int64_t(job.number)}};
}

Query tags_write(const std::string& arn, const std::vector<domain::Tag>& tags) {
  if (tags.empty()) return {"DELETE FROM tags WHERE arn = $1", {arn}};
  return {
      "INSERT INTO tags (arn, tags) VALUES ($1, $2) ON CONFLICT (arn) DO UPDATE SET tags = "
      "excluded.tags",
      {arn, text_of(tags)}};
}

Query resource_write(const ResourceWrite& write) {
  const ResourceRecord& resource = write.resource;
  const domain::JobKey& key = resource.key;
  const int64_t revision = resource.revision;
  if (write.remove)
    return {"DELETE FROM nouns WHERE kind = $1 AND region = $2 AND name = $3 AND revision = $4",
            {resource.kind, key.region, key.name, revision}};
  return {
      "INSERT INTO nouns (kind, region, name, revision, active, body) VALUES ($1, $2, $3, $4, "
      "$5, $6) ON CONFLICT (kind, region, name, revision) DO UPDATE SET active = "
      "excluded.active, body = excluded.body",
      {resource.kind, key.region, key.name, revision, int64_t(resource.active),
       dump(resource.body)}};
}

Query usage_write(const domain::ShareKey& share, const std::optional<domain::Usage>& usage) {
  if (!usage)
    return {"DELETE FROM usages WHERE region = $1 AND queue = $2 AND share = $3",
            {share.queue.region, share.queue.name, share.share}};
  return {
      "INSERT INTO usages (region, queue, share, cpu_seconds, at, cpus) VALUES ($1, $2, $3, "
      "$4, $5, $6) ON CONFLICT (region, queue, share) DO UPDATE SET cpu_seconds = "
      "excluded.cpu_seconds, at = excluded.at, cpus = excluded.cpus",
      {share.queue.region, share.queue.name, share.share, usage->cpu_seconds,
       to_milliseconds(usage->at), usage->cpus}};
}

Query record_write(const domain::RecordKey& key, const domain::Record* record) {
  if (!record)
    return {"DELETE FROM records WHERE kind = $1 AND name = $2", {key.first, key.second}};
  return {
      "INSERT INTO records (kind, name, revision, body) VALUES ($1, $2, $3, $4) ON CONFLICT "
      "(kind, name) DO UPDATE SET revision = excluded.revision, body = excluded.body",
      {key.first, key.second, int64_t(record->revision), dump(record->document)}};
}

}  // namespace

Query insert_of(const domain::Job& job) {
  // A child has the spec of its array.
  const std::string spec = job.parent != 0 ? std::string() : dump(to_json(job.spec));
  return {
      "INSERT INTO jobs (number, region, name, state, live, status_order, created, modified, "
      "spec, progress, queue, parent, reserved, batch_status) VALUES ($1, $2, $3, $4, $5, $6, "
      "$7, $8, $9, $10, $11, $12, $13, $14)",
      {int64_t(job.number), job.key.region, job.key.name, std::string(to_string(job.state)),
       int64_t(job.live()), status_order(job.state), to_milliseconds(job.created),
       to_milliseconds(job.modified), spec, dump(progress_json(job)),
       std::string(job.spec.listed_queue()), int64_t(job.parent),
       int64_t(domain::last_number_of(job) - job.number), stage_number(job)}};
}

Writes writes_of(const Batch& batch, domain::JobNumber last_job_number) {
  Writes writes;
  auto& statements = writes.statements;
  for (const CommandRecord& command : batch.commands) statements.push_back(command_write(command));
  for (const domain::Job& job : batch.jobs) {
    // A larger number is new; a smaller one may belong to a child that was not created yet.
    if (job.number > last_job_number) {
      statements.push_back(insert_of(job));
      continue;
    }
    writes.updates.emplace_back(statements.size(), &job);
    statements.push_back(job_update(job));
  }
  for (const auto& [arn, tags] : batch.tags) statements.push_back(tags_write(arn, tags));
  for (const ResourceWrite& each : batch.resources) statements.push_back(resource_write(each));
  for (const auto& [share, usage] : batch.usages) statements.push_back(usage_write(share, usage));
  for (const auto& [key, record] : batch.records)
    statements.push_back(record_write(key, record.get()));
  return writes;
}

}  // namespace trainyard::ledger::on_postgres
