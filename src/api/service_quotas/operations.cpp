// Implements the operations of Service Quotas, which list the limits of this server.
#include "service_quotas/operations.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "service_quotas/quota_list.hpp"
#include "shapes/service-quotas.hpp"

namespace trainyard::api::service_quotas {
namespace {

namespace quotas = shapes::service_quotas;

constexpr int64_t kPageMax = 100;  // as in the model

// Errors that only this service has.
Failure no_such_resource(std::string message) {
  return {400, "NoSuchResourceException", std::move(message)};
}
Failure illegal_argument(std::string message) {
  return {400, "IllegalArgumentException", std::move(message)};
}
Failure invalid_pagination_token(std::string message) {
  return {400, "InvalidPaginationTokenException", std::move(message)};
}

Failure no_such_service(const std::string& code) {
  return no_such_resource("The request failed because the specified service does not exist: " +
                          shorten(code, 63));
}

const QuotaService* find_service(const std::string& code) {
  const auto found = std::ranges::find(quota_services(), code, &QuotaService::code);
  return found == quota_services().end() ? nullptr : &*found;
}

quotas::ServiceQuota to_shape(const Context& context, const QuotaService& service,
                              const ServiceQuota& quota) {
  quotas::ServiceQuota out;
  out.service_code = service.code;
  out.service_name = service.name;
  out.quota_code = quota.code();
  out.quota_arn = "arn:aws:servicequotas:" + context.region + ":" + context.principal.account +
                  ":" + service.code + "/" + *out.quota_code;
  out.quota_name = quota.name;
  out.value = quota.value;
  out.unit = quota.unit;
  out.adjustable = false;
  out.global_quota = false;
  out.quota_applied_at_level = "ACCOUNT";
  return out;
}

Outcome<std::vector<quotas::ServiceQuota>> all_of(const Settings& settings, const Context& context,
                                                  const std::string& service_code) {
  const QuotaService* service = find_service(service_code);
  if (!service) return no_such_service(service_code);
  std::vector<quotas::ServiceQuota> out;
  for (const auto& quota :
       service_quotas(settings.quotas(), context.principal.name, context.region))
    if (quota.service == service_code) out.push_back(to_shape(context, *service, quota));
  return out;
}

// Returns the page of a token, which is the index of its first item in base64.
template <class T>
Outcome<std::vector<T>> page_of(std::vector<T> all, const std::optional<int64_t>& results_max,
                                const std::optional<std::string>& token,
                                std::optional<std::string>& next_token) {
  size_t first = 0;
  if (token) {
    const auto text = from_base64(*token);
    const auto at = text ? parse_int(*text) : Result<int64_t>(invalid(""));
    if (!at || *at < 0 || size_t(*at) > all.size())
      return invalid_pagination_token(
          "Invalid NextToken: use the NextToken of the list's previous page");
    first = size_t(*at);
  }
  const size_t end = std::min(all.size(), first + size_t(results_max.value_or(kPageMax)));
  if (end < all.size()) next_token = to_base64(std::to_string(end));
  return std::vector<T>(all.begin() + ptrdiff_t(first), all.begin() + ptrdiff_t(end));
}

Outcome<quotas::ServiceQuota> find_quota(const Settings& settings, const Context& context,
                                         const std::string& service, const std::string& code) {
  auto all = TRY(all_of(settings, context, service));
  const auto found = std::ranges::find(all, code, &quotas::ServiceQuota::quota_code);
  if (found == all.end())
    return no_such_resource("The request failed because the specified quota does not exist: " +
                            shorten(code, 128));
  return *found;
}

Outcome<quotas::ListServicesResponse> list_services(const quotas::ListServicesRequest& request) {
  std::vector<quotas::ServiceInfo> all;
  for (const auto& service : quota_services()) {
    quotas::ServiceInfo info;
    info.service_code = service.code;
    info.service_name = service.name;
    all.push_back(std::move(info));
  }
  quotas::ListServicesResponse out;
  out.services =
      TRY(page_of(std::move(all), request.max_results, request.next_token, out.next_token));
  return out;
}

Outcome<quotas::ListServiceQuotasResponse> list_quotas(
    const Settings& settings, const Context& context,
    const quotas::ListServiceQuotasRequest& request) {
  auto all = TRY(all_of(settings, context, *request.service_code));
  if (request.quota_code)
    std::erase_if(all, [&](const auto& each) { return each.quota_code != request.quota_code; });
  if (request.quota_applied_at_level.value_or("ACCOUNT") == "RESOURCE") all.clear();
  quotas::ListServiceQuotasResponse out;
  out.quotas =
      TRY(page_of(std::move(all), request.max_results, request.next_token, out.next_token));
  return out;
}

Outcome<quotas::RequestServiceQuotaIncreaseResponse> refuse_increase(
    const Settings& settings, const Context& context,
    const quotas::RequestServiceQuotaIncreaseRequest& request) {
  const auto quota = TRY(find_quota(settings, context, *request.service_code, *request.quota_code));
  return illegal_argument(
      *quota.quota_name +
      " is not raised by a request: instances of a type are set by [[quota]] in this "
      "server's config, and the other limits are the server's own");
}

}  // namespace

void add_operations(OperationTable& table, const Settings& settings, const Services&) {
  table.add<quotas::ListServices>([](const Context&, const quotas::ListServicesRequest& request) {
    return list_services(request);
  });
  table.add<quotas::ListServiceQuotas>(
      [&](const Context& context, const quotas::ListServiceQuotasRequest& request) {
        return list_quotas(settings, context, request);
      });
  table.add<quotas::GetServiceQuota>(
      [&](const Context& context, const quotas::GetServiceQuotaRequest& request)
          -> Outcome<quotas::GetServiceQuotaResponse> {
        quotas::GetServiceQuotaResponse out;
        out.quota = TRY(find_quota(settings, context, *request.service_code, *request.quota_code));
        return out;
      });
  // The server's limits are also the defaults, since no request can raise them.
  table.add<quotas::ListAWSDefaultServiceQuotas>(
      [&](const Context& context, const quotas::ListAWSDefaultServiceQuotasRequest& request)
          -> Outcome<quotas::ListAWSDefaultServiceQuotasResponse> {
        quotas::ListAWSDefaultServiceQuotasResponse out;
        out.quotas = TRY(page_of(TRY(all_of(settings, context, *request.service_code)),
                                 request.max_results, request.next_token, out.next_token));
        return out;
      });
  table.add<quotas::GetAWSDefaultServiceQuota>(
      [&](const Context& context, const quotas::GetAWSDefaultServiceQuotaRequest& request)
          -> Outcome<quotas::GetAWSDefaultServiceQuotaResponse> {
        quotas::GetAWSDefaultServiceQuotaResponse out;
        out.quota = TRY(find_quota(settings, context, *request.service_code, *request.quota_code));
        return out;
      });
  table.add<quotas::RequestServiceQuotaIncrease>(
      [&](const Context& context, const quotas::RequestServiceQuotaIncreaseRequest& request) {
        return refuse_increase(settings, context, request);
      });
  // Requests for increases cannot be made, so the history is empty.
  table.add<quotas::ListRequestedServiceQuotaChangeHistory>(
      [](const Context&, const quotas::ListRequestedServiceQuotaChangeHistoryRequest&)
          -> Outcome<quotas::ListRequestedServiceQuotaChangeHistoryResponse> {
        quotas::ListRequestedServiceQuotaChangeHistoryResponse out;
        out.requested_quotas.emplace();
        return out;
      });
  table.add<quotas::ListRequestedServiceQuotaChangeHistoryByQuota>(
      [&](const Context& context,
          const quotas::ListRequestedServiceQuotaChangeHistoryByQuotaRequest& request)
          -> Outcome<quotas::ListRequestedServiceQuotaChangeHistoryByQuotaResponse> {
        TRY(find_quota(settings, context, *request.service_code, *request.quota_code));
        quotas::ListRequestedServiceQuotaChangeHistoryByQuotaResponse out;
        out.requested_quotas.emplace();
        return out;
      });
  table.add<quotas::GetRequestedServiceQuotaChange>(
      [](const Context&, const quotas::GetRequestedServiceQuotaChangeRequest& request)
          -> Outcome<quotas::GetRequestedServiceQuotaChangeResponse> {
        return no_such_resource(
            "The request failed because the quota change request was not found: " +
            shorten(*request.request_id, 128));
      });
}

}  // namespace trainyard::api::service_quotas
