// Converts commands to the form that the ledger stores: a kind and a JSON body. A missing member takes its
// default, so an older record stays readable.
#include "base/text.hpp"
#include "batch/catalog.hpp"
#include "domain/json_fields.hpp"
#include "reconcile/state.hpp"

namespace trainyard::reconcile {
namespace {

using namespace batch;
using namespace domain;

Json tags_json(const std::vector<Tag>& tags) {
  Json list = Json::array();
  for (const Tag& tag : tags) list.push_back(to_json(tag));
  return list;
}

Json json_of(const Create& create) {
  const Job& job = create.job;
  Json json{{"number", job.number},      {"key", to_json(job.key)}, {"account", job.account},
            {"spec", to_json(job.spec)}, {"arn", create.arn},       {"tags", tags_json(create.tags)}};
  if (!job.awaits.empty()) json["awaits"] = job.awaits;
  if (!job.awaits_alike.empty()) json["awaits_alike"] = job.awaits_alike;
  if (job.clock_offset != Duration{}) json["clock_offset"] = job.clock_offset.count();
  return json;
}
Json json_of(const StopJob& stop) { return {{"job", stop.job}}; }
Json json_of(const SetTags& set) {
  return {{"arn", set.arn}, {"add", tags_json(set.add)}, {"remove_keys", set.remove_keys}};
}
Json json_of(const Place& place) {
  Json hosts = Json::array();
  for (const Place::At& at : place.hosts)
    hosts.push_back({{"machine", at.machine}, {"share", to_json(at.share)}});
  Json json{{"job", place.job}, {"token", place.token}, {"hosts", hosts}, {"note", place.note}};
  if (place.warm_pool != 0) json["warm_pool"] = place.warm_pool;
  if (!place.environment.empty()) json["environment"] = place.environment;
  if (place.spot) json["spot"] = true;
  return json;
}
Json json_of(const Fact& command) {
  const wire::StateFact& fact = command.fact;
  Json json{{"attempt", command.attempt.text()},
            {"host", command.host},
            {"number", fact.number},
            {"at", to_milliseconds(fact.at)},
            {"state", to_string(fact.state)}};
  if (!fact.message.empty()) json["message"] = fact.message;
  if (fact.exit_code) json["exit_code"] = *fact.exit_code;
  if (fact.fault) json["fault"] = to_string(*fact.fault);
  if (!fact.staged_model.empty()) json["staged_model"] = fact.staged_model;
  if (!fact.model_uri.empty()) json["model_uri"] = fact.model_uri;
  if (!fact.output_uri.empty()) json["output_uri"] = fact.output_uri;
  if (fact.stopped != StopCause::none) json["stopped"] = to_string(fact.stopped);
  return json;
}
Json json_of(const Lose& lose) {
  return {{"attempt", lose.attempt.text()},
          {"hosts", lose.hosts},
          {"fault", to_string(lose.fault)},
          {"reason", lose.reason}};
}
Json json_of(const Expire& expire) { return {{"job", expire.job}, {"cause", to_string(expire.cause)}}; }
Json json_of(const Interrupt& interrupt) {
  Json json{{"job", interrupt.job},
            {"attempt", interrupt.attempt},
            {"notice", interrupt.notice.count()},
            {"reason", interrupt.reason}};
  if (interrupt.host) json["host"] = *interrupt.host;
  if (interrupt.preemption) json["preemption"] = true;
  return json;
}
Json json_of(const KeepAlive& keep) { return {{"job", keep.job}, {"seconds", keep.seconds}}; }
Json json_of(const Withdraw& withdraw) {
  return {{"job", withdraw.job}, {"how", to_string(withdraw.how)}, {"reason", withdraw.reason}};
}
Json json_of(const StopAwaiting& command) { return {{"job", command.job}, {"awaited", command.awaited}}; }
constexpr std::string_view kChanges[] = {"create", "update", "remove"};  // as ResourceChange
Json json_of(const ChangeResource& change) {
  return {{"how", kChanges[size_t(change.how)]},
          {"kind", batch::kind_of(change.resource)},
          {"noun", batch::to_json(change.resource)}};
}
Json json_of(const MakeChildren& make) { return {{"array", make.array}, {"count", make.count}}; }
Json json_of(const FinishArray& finish) { return {{"array", finish.array}, {"failed", finish.failed}}; }
Json json_of(const Prioritise& command) { return {{"job", command.job}, {"priority", command.priority}}; }
Json json_of(const Fail& fail) { return {{"job", fail.job}, {"reason", fail.reason}}; }
Json json_of(const ChangeRecords& change) {
  Json writes = Json::array();
  for (const domain::RecordWrite& write : change.writes) writes.push_back(domain::to_json(write));
  return {{"writes", std::move(writes)}};
}
Json json_of(const EndPool& end) { return {{"job", end.job}, {"reused_by", end.reused_by}}; }

Result<AttemptId> attempt_id_of(const Json& json) {
  if (!json.is_string()) return invalid("an attempt must be a string");
  return parse_attempt_id(json.get<std::string>());
}
Result<HostIndex> host_of(const Json& json) {
  if (!json.is_number_unsigned()) return invalid("a host must be a number");
  return json.get<HostIndex>();
}
Result<Place::At> place_of(const Json& json) {
  Place::At at;
  TRY(Fields(json, "place").read("machine", at.machine).read("share", at.share, share_from_json).result());
  return at;
}

Result<Command> create_of(const Json& json) {
  Create create;
  int64_t clock_offset = 0;
  TRY(Fields(json, "create")
          .read("number", create.job.number)
          .read("key", create.job.key, job_key_from_json)
          .read("account", create.job.account)
          .read("spec", create.job.spec, job_spec_from_json)
          .read("arn", create.arn)
          .read("awaits", create.job.awaits, job_number_from_json)
          .read("awaits_alike", create.job.awaits_alike, job_number_from_json)
          .read("clock_offset", clock_offset)
          .read("tags", create.tags, tag_from_json)
          .result());
  create.job.clock_offset = Duration{clock_offset};
  return Command(std::move(create));
}
Result<Command> stop_of(const Json& json) {
  StopJob stop;
  TRY(Fields(json, "stop").read("job", stop.job).result());
  return Command(stop);
}
Result<Command> tags_of(const Json& json) {
  SetTags set;
  TRY(Fields(json, "tags")
          .read("arn", set.arn)
          .read("add", set.add, tag_from_json)
          .read("remove_keys", set.remove_keys)
          .result());
  return Command(std::move(set));
}
Result<Command> placed_of(const Json& json) {
  Place place;
  TRY(Fields(json, "place")
          .read("job", place.job)
          .read("token", place.token)
          .read("hosts", place.hosts, place_of)
          .read("note", place.note)
          .read("warm_pool", place.warm_pool)
          .read("environment", place.environment)
          .read("spot", place.spot)
          .result());
  return Command(std::move(place));
}
Result<Command> fact_of(const Json& json) {
  Fact command;
  wire::StateFact& fact = command.fact;
  TRY(Fields(json, "fact")
          .read("attempt", command.attempt, attempt_id_of)
          .read("host", command.host)
          .read("number", fact.number)
          .read("at", fact.at)
          .read("state", fact.state, parse_host_state)
          .read("message", fact.message)
          .read("exit_code", fact.exit_code)
          .read("fault", fact.fault, parse_fault)
          .read("staged_model", fact.staged_model)
          .read("model_uri", fact.model_uri)
          .read("output_uri", fact.output_uri)
          .read("stopped", fact.stopped, parse_stop_cause)
          .result());
  return Command(std::move(command));
}
Result<Command> lose_of(const Json& json) {
  Lose lose;
  TRY(Fields(json, "lose")
          .read("attempt", lose.attempt, attempt_id_of)
          .read("hosts", lose.hosts, host_of)
          .read("fault", lose.fault, parse_fault)
          .read("reason", lose.reason)
          .result());
  return Command(std::move(lose));
}
Result<Command> expire_of(const Json& json) {
  Expire expire;
  TRY(Fields(json, "expire").read("job", expire.job).read("cause", expire.cause, parse_stop_cause).result());
  return Command(expire);
}
Result<Command> interrupt_of(const Json& json) {
  Interrupt interrupt;
  int64_t notice_milliseconds = 0;
  TRY(Fields(json, "interrupt")
          .read("job", interrupt.job)
          .read("attempt", interrupt.attempt)
          .read("host", interrupt.host)
          .read("notice", notice_milliseconds)
          .read("reason", interrupt.reason)
          .read("preemption", interrupt.preemption)
          .result());
  interrupt.notice = Duration{notice_milliseconds};
  return Command(std::move(interrupt));
}
Result<Command> keep_alive_of(const Json& json) {
  KeepAlive keep;
  TRY(Fields(json, "keep_alive").read("job", keep.job).read("seconds", keep.seconds).result());
  return Command(keep);
}
Result<Command> end_pool_of(const Json& json) {
  EndPool end;
  TRY(Fields(json, "end_pool").read("job", end.job).read("reused_by", end.reused_by).result());
  return Command(std::move(end));
}

Result<Command> withdraw_of(const Json& json) {
  Withdraw withdraw;
  TRY(Fields(json, "withdraw")
          .read("job", withdraw.job)
          .read("how", withdraw.how, parse_withdrawn)
          .read("reason", withdraw.reason)
          .result());
  return Command(std::move(withdraw));
}
Result<Command> stop_awaiting_of(const Json& json) {
  StopAwaiting command;
  TRY(Fields(json, "stop_awaiting").read("job", command.job).read("awaited", command.awaited).result());
  return Command(command);
}
Result<Command> prioritise_of(const Json& json) {
  Prioritise command;
  TRY(Fields(json, "prioritise").read("job", command.job).read("priority", command.priority).result());
  return Command(command);
}
Result<batch::ResourceChange> parse_change(std::string_view text) {
  for (size_t i = 0; i < std::size(kChanges); ++i)
    if (kChanges[i] == text) return batch::ResourceChange(i);
  return invalid("unknown change '" + shorten(text, 40) + "'");
}
Result<Command> change_resource_of(const Json& json) {
  ChangeResource change;
  std::string kind;
  Json resource;
  TRY(Fields(json, "noun")
          .read("how", change.how, parse_change)
          .read("kind", kind)
          .read("noun", resource)
          .result());
  change.resource = TRY(batch::resource_from_json(kind, resource));
  return Command(std::move(change));
}
Result<Command> make_children_of(const Json& json) {
  MakeChildren make;
  TRY(Fields(json, "make_children").read("array", make.array).read("count", make.count).result());
  return Command(make);
}
Result<Command> finish_array_of(const Json& json) {
  FinishArray finish;
  TRY(Fields(json, "finish_array").read("array", finish.array).read("failed", finish.failed).result());
  return Command(finish);
}
Result<Command> change_records_of(const Json& json) {
  ChangeRecords change;
  TRY(Fields(json, "records").read("writes", change.writes, domain::record_write_from_json).result());
  return Command(std::move(change));
}

Result<Command> fail_of(const Json& json) {
  Fail fail;
  TRY(Fields(json, "fail").read("job", fail.job).read("reason", fail.reason).result());
  return Command(std::move(fail));
}

struct Form {
  std::string_view kind;
  Result<Command> (*read)(const Json&);
};
// In the order of Command.
constexpr Form kForms[] = {{"create", create_of},
                           {"stop", stop_of},
                           {"tags", tags_of},
                           {"place", placed_of},
                           {"fact", fact_of},
                           {"lose", lose_of},
                           {"expire", expire_of},
                           {"interrupt", interrupt_of},
                           {"keep_alive", keep_alive_of},
                           {"end_pool", end_pool_of},
                           {"withdraw", withdraw_of},
                           {"stop_awaiting", stop_awaiting_of},
                           {"noun", change_resource_of},
                           {"make_children", make_children_of},
                           {"finish_array", finish_array_of},
                           {"prioritise", prioritise_of},
                           {"fail", fail_of},
                           {"records", change_records_of}};
static_assert(std::size(kForms) == std::variant_size_v<Command>);

}  // namespace

std::string_view kind_of(const Command& command) { return kForms[command.index()].kind; }

Json body_of(const Command& command) {
  return std::visit([](const auto& each) { return json_of(each); }, command);
}

Result<Command> command_of(const ledger::CommandRecord& record) {
  for (const Form& form : kForms)
    if (form.kind == record.kind) return form.read(record.body);
  return corrupt("the ledger has a command of the unknown kind '" + shorten(record.kind, 40) + "'");
}

}  // namespace trainyard::reconcile
