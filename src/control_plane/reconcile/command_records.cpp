// Converts commands to and from the records of the ledger: a kind and a JSON body. A missing member
// has its default, so older records stay readable.
#include "base/enum_table.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "batch/catalog.hpp"
#include "domain/json_forms.hpp"
#include "reconcile/state.hpp"

namespace trainyard::reconcile {
namespace {

using namespace batch;
using namespace domain;

constexpr auto kCreate = json_record<CreateJob>("create", [](auto& side, auto& create) {
  side("number", create.number);
  side("key", create.key, job_key_from_json);
  side("account", create.account);
  side("spec", create.spec, job_spec_from_json);
  side("arn", create.arn);
  side.if_set("awaits", create.awaits, kJobNumberForm);
  side.if_set("awaits_alike", create.awaits_alike, kJobNumberForm);
  side.if_set("clock_offset", create.clock_offset);
  side("tags", create.tags, tag_from_json);
});

constexpr auto kStop = json_record<StopJob>("stop", [](auto& side, auto& stop) {
  side("job", stop.job);
  side.if_set("grace", stop.grace);
  side.if_set("reason", stop.reason);
});

constexpr auto kSetTags = json_record<SetTags>("tags", [](auto& side, auto& set) {
  side("arn", set.arn);
  side("add", set.add, tag_from_json);
  side("remove_keys", set.remove_keys);
});

constexpr auto kPlacement = json_record<Placement>("place", [](auto& side, auto& placement) {
  side("machine", placement.machine);
  side("share", placement.share, share_from_json);
});
constexpr auto kStart = json_record<StartAttempt>("place", [](auto& side, auto& start) {
  side("job", start.job);
  side("token", start.token);
  side("hosts", start.hosts, kPlacement);
  side("note", start.note);
  side.if_set("warm_pool", start.pool);
  side.if_set("environment", start.environment);
  side.if_set("spot", start.spot);
  side.if_set("mutual_tls", start.mutual_tls);
  side.if_set("preference", start.preference);
});

constexpr auto kFact = json_record<Fact>("fact", [](auto& side, auto& command) {
  auto& fact = command.fact;
  side("attempt", command.attempt, kAttemptIdForm);
  side("host", command.host);
  side("number", fact.number);
  side("at", fact.at);
  side("state", fact.state, parse_host_state);
  side.if_set("message", fact.message);
  side.if_set("exit_code", fact.exit_code);
  side.if_set("fault", fact.fault, parse_fault);
  side.if_set("staged_model", fact.staged_model);
  side.if_set("model_uri", fact.model_uri);
  side.if_set("output_uri", fact.output_uri);
  side.if_set("stopped", fact.stopped, parse_stop_cause);
  side.if_set("address", fact.address);
});

constexpr auto kLose = json_record<Lose>("lose", [](auto& side, auto& lose) {
  side("attempt", lose.attempt, kAttemptIdForm);
  side("hosts", lose.hosts, kHostIndexForm);
  side("fault", lose.fault, parse_fault);
  side("reason", lose.reason);
});

constexpr auto kExpire = json_record<Expire>("expire", [](auto& side, auto& expire) {
  side("job", expire.job);
  side("cause", expire.cause, parse_stop_cause);
  side.if_set("grace", expire.grace);
});

constexpr auto kInterrupt = json_record<Interrupt>("interrupt", [](auto& side, auto& interrupt) {
  side("job", interrupt.job);
  side("attempt", interrupt.attempt);
  side.if_set("host", interrupt.host);
  side("notice", interrupt.notice);
  side("reason", interrupt.reason);
  side.if_set("preemption", interrupt.preemption);
});

constexpr auto kKeepAlive = json_record<KeepAlive>("keep_alive", [](auto& side, auto& keep) {
  side("job", keep.job);
  side("seconds", keep.seconds);
});

constexpr auto kEndPool = json_record<EndPool>("end_pool", [](auto& side, auto& end) {
  side("job", end.job);
  side("reused_by", end.reused_by);
});

constexpr auto kCancelJob = json_record<CancelJob>("withdraw", [](auto& side, auto& cancel) {
  side("job", cancel.job);
  side("how", cancel.how, parse_cancellation);
  side("reason", cancel.reason);
  side.if_set("grace", cancel.grace);
});

constexpr auto kStopAwaiting =
    json_record<StopAwaiting>("stop_awaiting", [](auto& side, auto& command) {
      side("job", command.job);
      side("awaited", command.awaited);
    });

constexpr EnumTable<ResourceChange> kChanges{"resource change",
                                             {{ResourceChange::create, "create"},
                                              {ResourceChange::update, "update"},
                                              {ResourceChange::remove, "remove"}}};

// The record of a ChangeResource. Its kind determines how the resource is read.
struct StoredChange {
  ResourceChange how = ResourceChange::create;
  std::string kind;
  Json resource;
};
constexpr auto kStoredChange = json_record<StoredChange>("noun", [](auto& side, auto& change) {
  side("how", change.how, kChanges);
  side("kind", change.kind);
  side("noun", change.resource);
});
struct ChangeResourceForm {
  using Value = ChangeResource;
  static Json write(const ChangeResource& change) {
    return kStoredChange.write({change.how, std::string(batch::kind_of(change.resource)),
                                batch::to_json(change.resource)});
  }
  static Result<ChangeResource> read(const Json& json) {
    const StoredChange stored = TRY(kStoredChange.read(json));
    auto resource = TRY(batch::resource_from_json(stored.kind, stored.resource));
    return ChangeResource{stored.how, std::move(resource)};
  }
};
constexpr ChangeResourceForm kChangeResource;

constexpr auto kMakeChildren =
    json_record<MakeChildren>("make_children", [](auto& side, auto& make) {
      side("array", make.array);
      side("count", make.count);
    });

constexpr auto kFinishArray =
    json_record<FinishArray>("finish_array", [](auto& side, auto& finish) {
      side("array", finish.array);
      side("failed", finish.failed);
    });

constexpr auto kPrioritise = json_record<Prioritise>("prioritise", [](auto& side, auto& command) {
  side("job", command.job);
  side("priority", command.priority);
});

constexpr auto kFail = json_record<Fail>("fail", [](auto& side, auto& fail) {
  side("job", fail.job);
  side("reason", fail.reason);
});

constexpr auto kChangeRecords = json_record<ChangeRecords>("records", [](auto& side, auto& change) {
  side("writes", change.writes, domain::record_write_from_json);
});

struct Form {
  std::string_view kind;
  Json (*write)(const Command&);
  Result<Command> (*read)(const Json&);
};
template <size_t index, const auto& record>
constexpr Form form(std::string_view kind) {
  using Value = typename std::remove_cvref_t<decltype(record)>::Value;
  static_assert(std::is_same_v<Value, std::variant_alternative_t<index, Command>>);
  return {kind, [](const Command& command) { return record.write(std::get<index>(command)); },
          [](const Json& json) -> Result<Command> { return Command(TRY(record.read(json))); }};
}
// The records of all commands, in the order of Command.
constexpr Form kForms[] = {
    form<0, kCreate>("create"),
    form<1, kStop>("stop"),
    form<2, kSetTags>("tags"),
    form<3, kStart>("place"),
    form<4, kFact>("fact"),
    form<5, kLose>("lose"),
    form<6, kExpire>("expire"),
    form<7, kInterrupt>("interrupt"),
    form<8, kKeepAlive>("keep_alive"),
    form<9, kEndPool>("end_pool"),
    form<10, kCancelJob>("withdraw"),
    form<11, kStopAwaiting>("stop_awaiting"),
    form<12, kChangeResource>("noun"),
    form<13, kMakeChildren>("make_children"),
    form<14, kFinishArray>("finish_array"),
    form<15, kPrioritise>("prioritise"),
    form<16, kFail>("fail"),
    form<17, kChangeRecords>("records"),
};
static_assert(std::size(kForms) == std::variant_size_v<Command>);

}  // namespace

std::string_view kind_of(const Command& command) { return kForms[command.index()].kind; }

Json body_of(const Command& command) { return kForms[command.index()].write(command); }

Result<Command> command_of(const ledger::CommandRecord& record) {
  for (const Form& form : kForms)
    if (form.kind == record.kind) return form.read(record.body);
  return corrupt("the ledger has a command of the unknown kind '" + shorten(record.kind, 40) + "'");
}

}  // namespace trainyard::reconcile
