#include "auth/authorizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "auth/job_policy.hpp"
#include "auth/member_texts.hpp"
#include "auth/notify_accesses.hpp"
#include "auth/roles.hpp"
#include "auth/temporary_keys.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "file_systems/file_systems.hpp"
#include "operations/fsx_tags.hpp"
#include "operations/job_role.hpp"
#include "policy/managed.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kCachedPolicies = 1024;  // parsed policies of sessions and jobs: some KiB each
constexpr std::string_view kAdministrator = "arn:aws:iam::aws:policy/AdministratorAccess";

using SharedPolicies = std::vector<std::shared_ptr<const policy::Policy>>;

const policy::Policy* administrator() {
  static const policy::ManagedPolicy* const found = policy::find_managed_policy(kAdministrator);
  CHECK(found != nullptr, "AdministratorAccess is a built-in policy");
  return found->policy.get();
}

std::string_view bucket_of(std::string_view place) { return place.substr(0, place.find('/')); }

// Returns the policy of the bucket of an S3 resource. Other resources have none.
std::vector<const policy::Policy*> bucket_policy(const policy::Identities* identities,
                                                 std::string_view resource) {
  constexpr std::string_view kS3 = "arn:aws:s3:::";
  if (!identities || !resource.starts_with(kS3)) return {};
  const auto* found = identities->find_bucket_policy(bucket_of(resource.substr(kS3.size())));
  return found ? std::vector{found->document.policy.get()} : std::vector<const policy::Policy*>();
}

// Returns the ARN of the IAM entity with its stored path, if the ARN has none: requests name an
// entity without its path, which policies may name. Other ARNs are returned unchanged.
std::string canonical_entity(const policy::Identities* identities, const std::string& arn) {
  constexpr std::string_view kIam = "arn:aws:iam::";
  const size_t slash = arn.find('/');
  if (!identities || !arn.starts_with(kIam) || slash == arn.npos) return arn;
  const size_t colon = arn.rfind(':', slash);
  const std::string_view kind = std::string_view(arn).substr(colon + 1, slash - colon - 1);
  const std::string_view name = std::string_view(arn).substr(slash + 1);
  const auto known = [&](const auto* entity) { return entity ? identities->arn_of(*entity) : arn; };
  if (kind == "role") return known(identities->find_role(name));
  if (kind == "user") return known(identities->find_user(name));
  if (kind == "group") return known(identities->find_group(name));
  if (kind == "instance-profile") return known(identities->find_instance_profile(name));
  return arn;
}

}  // namespace

// The rights of a principal, with shared ownership of their policies.
struct Authorizer::Rights {
  bool everything = false;
  bool of_definitions = false;  // a defined user or role: its policies may read tags
  policy::Policies policies;
  std::shared_ptr<const policy::Identities> identities;
  std::vector<SharedPolicies> kept;
};

// Caches parsed policies that are not in the snapshot of identities. Threads: callable from
// anywhere.
struct Authorizer::Cache {
  Mutex mutex;
  std::unordered_map<std::string, SharedPolicies> policies
      GUARDED_BY(mutex);  // by job and attempt, or by text

  template <class Make>
  SharedPolicies get(const std::string& name, const Make& make) {
    {
      const MutexLock lock(mutex);
      if (const auto found = policies.find(name); found != policies.end()) return found->second;
    }
    SharedPolicies made = make();
    const MutexLock lock(mutex);
    if (policies.size() >= kCachedPolicies) policies.clear();
    policies.insert_or_assign(name, made);
    return made;
  }
};

Authorizer::Authorizer(const Settings& settings, const Services& services)
    : settings_(settings), services_(services), cache_(std::make_unique<Cache>()) {}
Authorizer::~Authorizer() = default;

Authorizer::Rights Authorizer::rights_of(const Principal& principal) const {
  Rights rights;
  if (settings_.identities) rights.identities = settings_.identities();
  const policy::Identities* identities = rights.identities.get();
  if (principal.owner()) {
    rights.everything = true;
    rights.policies.identity = {administrator()};
    return rights;
  }
  if (principal.kind == PrincipalKind::user) {
    rights.of_definitions = true;
    if (const policy::User* user = identities ? identities->find_user(principal.name) : nullptr) {
      rights.policies.identity = identities->policies_of(*user);
      rights.policies.boundary = identities->boundary_of(*user);
    }
    return rights;
  }
  CHECK(principal.session != nullptr,
        "the principal of a session has the RoleSession of its token");
  const RoleSession& session = *principal.session;
  if (session.limited) {
    auto& of_session = rights.policies.session.emplace();
    for (const std::string& text : session.policies) {
      const policy::VersionedPolicy* managed =
          identities && text.starts_with("arn:") ? identities->find_policy(text) : nullptr;
      if (managed) {
        of_session.push_back(managed->default_document()->document.policy.get());
        continue;
      }
      rights.kept.push_back(cache_->get(text, [&] {
        auto parsed = policy::parse_policy(text, policy::PolicyKind::identity);
        return parsed ? SharedPolicies{*parsed} : SharedPolicies();
      }));
      for (const auto& policy : rights.kept.back()) of_session.push_back(policy.get());
    }
  }
  if (const policy::Role* role =
          identities ? identities->find_role(role_name(session.role_arn)) : nullptr) {
    rights.of_definitions = true;
    rights.policies.identity = identities->policies_of(*role);
    rights.policies.boundary = identities->boundary_of(*role);
  } else if (settings_.open_roles) {
    rights.everything = !session.limited;
    rights.policies.identity = {administrator()};
  } else if (principal.job && !session.assumed) {
    rights.kept.push_back(cache_->get(
        "job " + std::to_string(session.job_number) + " " + std::to_string(session.attempt),
        [&] { return job_policies(*principal.job); }));
    for (const auto& policy : rights.kept.back()) rights.policies.identity.push_back(policy.get());
  }
  return rights;
}

policy::Request Authorizer::request_of(const Context& context, const ServiceValues& values) const {
  const Principal& principal = context.principal;
  policy::Request request;
  request.principal_arn = principal.arn;
  request.role_arn = principal.role_arn;
  request.account = principal.account;
  policy::ConditionValues& keys = request.values;
  keys.set("aws:PrincipalArn", principal.role_arn.empty() ? principal.arn : principal.role_arn);
  keys.set("aws:PrincipalAccount", principal.account);
  keys.set("aws:PrincipalType", principal.kind == PrincipalKind::user ? "User" : "AssumedRole");
  keys.set("aws:userid", principal.user_id);
  keys.set("aws:CurrentTime", to_iso8601(context.now));
  keys.set("aws:EpochTime", std::to_string(to_milliseconds(context.now) / 1000));
  keys.set("aws:SecureTransport", context.secure ? "true" : "false");
  keys.set("aws:RequestedRegion", context.region);
  if (!context.source_ip.empty()) keys.set("aws:SourceIp", context.source_ip);
  if (!context.user_agent.empty()) keys.set("aws:UserAgent", context.user_agent);
  if (principal.kind == PrincipalKind::user) keys.set("aws:username", principal.name);
  if (principal.session) {
    keys.set("aws:TokenIssueTime", to_iso8601(principal.session->issued));
    if (!principal.session->source_identity.empty())
      keys.set("aws:SourceIdentity", principal.session->source_identity);
  }
  if (settings_.identities) {
    const auto identities = settings_.identities();
    const policy::Entity* entity = nullptr;
    if (principal.kind == PrincipalKind::user) entity = identities->find_user(principal.name);
    if (principal.session) entity = identities->find_role(role_name(principal.role_arn));
    if (entity)
      for (const auto& tag : entity->tags) keys.set("aws:PrincipalTag/" + tag.key, tag.value);
  }
  for (const auto& [name, of_it] : values) keys.set(name, of_it);
  return request;
}

// Returns the ARN under which the tags of a resource are stored: for a child of an array or a node,
// the job's; for a definition without a revision, the one of its newest active revision. "" = the
// resource does not exist or has no tags.
std::string Authorizer::tagged_arn(const std::string& resource) const {
  const auto parts = split(resource, ':');
  if (parts.size() < 6 ||
      (parts[2] != "sagemaker" && parts[2] != "batch" && parts[2] != "trainyard"))
    return "";
  const std::string region(parts[3]);
  const std::string_view rest =
      std::string_view(resource).substr(size_t(parts[5].data() - resource.data()));
  for (const std::string_view kind : {"training-job/", "service-job/", "job/"}) {
    if (!rest.starts_with(kind)) continue;
    const std::string_view name = rest.substr(kind.size());
    const auto job =
        services_.control.find({region, std::string(name.substr(0, name.find_first_of(":#")))});
    return job ? control::job_arn(**job) : "";
  }
  constexpr std::string_view kDefinition = "job-definition/";
  if (!rest.starts_with(kDefinition) || rest.find(':') != std::string_view::npos) return resource;
  const auto newest =
      services_.control.definitions({.region = region,
                                     .name = std::string(rest.substr(kDefinition.size())),
                                     .active = true,
                                     .definitions_max = 1});
  return newest && !newest->empty() ? resource + ":" + std::to_string(newest->front().revision)
                                    : "";
}

// Adds the stored tags of the resource, if it exists.
void Authorizer::add_tags(const Access& access, policy::Request& request) const {
  if (access.resource.starts_with("arn:aws:fsx:") && services_.file_systems) {
    const auto present = services_.file_systems->snapshot();
    if (const auto* tags = fsx_tags(*present, settings_.account, access.resource))
      for (const auto& [key, value] : *tags) request.values.set("aws:ResourceTag/" + key, value);
    return;
  }
  if (services_.notifications && is_notify_arn(access.resource)) {
    for (const auto& [key, value] : notify_tags(*services_.notifications, access.resource))
      request.values.set("aws:ResourceTag/" + key, value);
    return;
  }
  const std::string arn = tagged_arn(access.resource);
  if (arn.empty()) return;
  const auto tags = services_.control.tags(arn);
  if (!tags) return;
  for (const auto& tag : *tags) request.values.set("aws:ResourceTag/" + tag.key, tag.value);
}

std::optional<Failure> Authorizer::check_all(const Context& context, const shapes::Service& service,
                                             Accesses accesses) const {
  Rights rights = rights_of(context.principal);
  const bool buckets_limit = rights.identities && !rights.identities->bucket_policies().empty();
  if (rights.everything && (context.principal.owner() || !buckets_limit)) return {};
  const policy::Request common = request_of(context, accesses.values);
  for (Access& access : accesses.all) {
    policy::Request request = common;
    request.action = access.action;
    if (access.action == "iam:PassRole")
      request.resource =
          canonical_role(rights.identities.get(), own_role(access.resource, settings_.account));
    else
      request.resource = canonical_entity(rights.identities.get(), access.resource);
    if (access.action == "iam:PassRole" && is_reserved_role(access.resource))
      return access_denied(
          service, policy::describe_denial(
                       request, {policy::Verdict::implicitly_denied, "identity-based policy", ""}));
    if (access.action == "iam:PassRole")
      for (const PassedRole& role : accesses.roles)
        if (role.arn == access.resource)
          request.values.set("iam:PassedToService", std::string(role.service));
    if (rights.of_definitions) add_tags(access, request);
    rights.policies.resource = bucket_policy(rights.identities.get(), request.resource);
    const policy::Decision decision = policy::evaluate(request, rights.policies);
    if (decision.verdict != policy::Verdict::allowed)
      return access_denied(service, policy::describe_denial(request, decision));
  }
  return {};
}

// Checks that each defined role trusts the service that it is passed to.
std::optional<Failure> Authorizer::check_passed(const Context& context,
                                                const shapes::Service& service,
                                                const std::vector<PassedRole>& roles) const {
  if (!settings_.identities) return {};
  const auto identities = settings_.identities();
  for (const PassedRole& passed : roles) {
    const policy::Role* role = identities->find_role(role_name(passed.arn));
    if (!role) continue;
    policy::Request request;
    request.service = passed.service;
    request.account = context.principal.account;
    request.action = "sts:AssumeRole";
    request.resource = identities->arn_of(*role);
    policy::Policies policies;
    policies.resource = {role->trust.policy.get()};
    if (policy::evaluate(request, policies).verdict == policy::Verdict::allowed) continue;
    return validation(service, "Could not assume role " + passed.arn +
                                   ". Please ensure that the role exists and allows principal '" +
                                   std::string(passed.service) + "' to assume the role.");
  }
  return {};
}

std::optional<Failure> Authorizer::check_assume_role(const Context& context,
                                                     const shapes::Service& service,
                                                     Accesses accesses,
                                                     bool sets_source_identity) const {
  Rights rights = rights_of(context.principal);
  policy::Request request = request_of(context, accesses.values);
  request.action = "sts:AssumeRole";
  request.resource = canonical_role(rights.identities.get(), accesses.all.front().resource);
  const auto denied = [&](const policy::Decision& decision) {
    return access_denied(service, policy::describe_denial(request, decision));
  };
  const policy::Decision untrusted{policy::Verdict::implicitly_denied, "role trust policy", ""};
  if (is_reserved_role(request.resource)) return denied(untrusted);
  const policy::Role* role =
      rights.identities ? rights.identities->find_role(role_name(request.resource)) : nullptr;
  // Open roles trust every principal that may assume roles. The operation itself checks that the
  // text is a role's ARN.
  if (!role && !settings_.open_roles) return denied(untrusted);
  if (role) rights.policies.resource = {role->trust.policy.get()};
  for (const char* action : {"sts:AssumeRole", "sts:SetSourceIdentity"}) {
    if (std::string_view(action) != "sts:AssumeRole" && !sets_source_identity) continue;
    request.action = action;
    const policy::Decision decision = policy::evaluate(request, rights.policies);
    if (decision.verdict != policy::Verdict::allowed) return denied(decision);
  }
  return {};
}

std::optional<Failure> Authorizer::check(const Context& context,
                                         const shapes::OperationShape& operation, const void* input,
                                         std::optional<Accesses> known) const {
  const shapes::Service& service = *operation.service;
  const bool assumes = service.name == "sts" && operation.name == "AssumeRole";
  // The owner's jobs, too, run only as roles that trust their service.
  const bool creates =
      settings_.identities &&
      (operation.name == "CreateTrainingJob" || operation.name == "RegisterJobDefinition" ||
       operation.name == "SubmitServiceJob" || operation.name == "CreateComputeEnvironment");
  if (context.principal.owner() && !assumes && !creates) return {};
  Accesses accesses = known ? *std::move(known) : table_.find(context, operation, input);
  if (assumes)
    return check_assume_role(context, service, std::move(accesses),
                             !member_text(*operation.input, input, "SourceIdentity").empty());
  // A role that is not defined gets the rights that the job's request needs, so its creator must
  // have them.
  if (!settings_.open_roles && !context.principal.owner()) {
    const auto identities = settings_.identities ? settings_.identities() : nullptr;
    const bool undefined = std::ranges::any_of(accesses.roles, [&](const PassedRole& role) {
      return !identities || !identities->find_role(role_name(role.arn));
    });
    const auto need = [&](const char* action, const std::string& place) {
      accesses.all.push_back({action, "arn:aws:s3:::" + place});
    };
    for (const std::string& place : undefined ? accesses.reads : std::vector<std::string>()) {
      need("s3:GetObject", place);
      need("s3:ListBucket", std::string(bucket_of(place)));
    }
    for (const std::string& place : undefined ? accesses.writes : std::vector<std::string>())
      for (const char* action : {"s3:PutObject", "s3:GetObject", "s3:DeleteObject"})
        need(action, place);
  }
  // As on AWS, the creator of a job that mounts a file system must be allowed to describe it. File
  // systems of the config have lists of users and roles instead
  // (operations/shared_directories.hpp).
  for (const std::string& id : accesses.file_systems)
    if (!settings_.file_systems.contains(id))
      accesses.all.push_back(
          {"fsx:DescribeFileSystems",
           fsx_arn(context.region, context.principal.account, "file-system/" + id)});
  const std::vector<PassedRole> passed = accesses.roles;
  if (auto failure = check_all(context, service, std::move(accesses))) return failure;
  // A role in an instance profile may trust any service, as on AWS.
  if (service.name == "iam") return {};
  return check_passed(context, service, passed);
}

std::optional<Failure> Authorizer::check(const Context& context, const shapes::Service& service,
                                         std::string action, std::string resource) const {
  if (context.principal.owner()) return {};
  return check_all(context, service,
                   {{{std::move(action), std::move(resource)}}, {}, {}, {}, {}, {}});
}

bool Authorizer::may_describe(const Context& context, const domain::JobKey& job) const {
  Context there = context;
  there.region = job.region;
  shapes::trainyard::DescribeJobRequest describe;
  describe.job_name = job.name;
  return !check(there, shapes::trainyard::DescribeJob::shape(), &describe);
}

}  // namespace trainyard::api
