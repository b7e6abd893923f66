import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.core.log.messages import Message, Text, ToolCall, Usage
from foldline.core.measure.overflow import Overflow, cut_call, cut_short, fits_with, overflow, silent
from foldline.core.measure.window import Window

# provider, error message, limit, requested tokens, max_tokens
OVERFLOWS = [
    ("Anthropic", '400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_011"}', 200_000, 213_462, None),
    ("Anthropic sum", "400 input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again", 200_000, 188_240, 21_333),
    ("Anthropic sum, no sizes", "input length and `max_tokens` exceed context limit", None, None, None),
    ("Anthropic 413", '413 {"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}', None, None, None),
    ("Anthropic images", '400 {"type":"error","error":{"type":"invalid_request_error","message":"too many images and documents: 104 + 1 > 100"}}', None, None, None),
    ("Bedrock", "ValidationException: The model returned the following errors: Input is too long for requested model.", None, None, None),
    ("Bedrock Mantle", "prompt tokens (210,123) exceed model maximum (200,000)", 200_000, 210_123, None),
    ("OpenAI", '{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}', None, None, None),
    ("OpenAI chat", "This model's maximum context length is 128000 tokens. However, your messages resulted in 130541 tokens (129000 in the messages, 1541 in the functions). Please reduce the length of the messages or functions.", 128_000, 130_541, None),
    ("OpenAI chat, reserve", "This model's maximum context length is 8,192 tokens. However, you requested 10,000 tokens (6,000 in the messages, 4,000 in the completion). Please reduce the length of the messages or completion.", 8_192, 6_000, 4_000),
    ("OpenAI limit", "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.", 272_000, 300_123, None),
    ("OpenAI JSON escape", '{"message":"This model\\u2019s maximum context length is 16385 tokens. However, your messages resulted in 20000 tokens."}', 16_385, 20_000, None),
    ("LiteLLM", "litellm.ContextWindowExceededError: The request exceeds the model's maximum context length of 131,072 tokens", 131_072, None, None),
    ("LiteLLM sizes", "Input (140000) exceeds maximum context length (131072)", 131_072, 140_000, None),
    ("Gemini", '{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}', 1_048_575, 1_196_265, None),
    ("Gemini, no sizes", "The input token count of this request exceeds the maximum for this model", None, None, None),
    ("xAI", "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812, None),
    ("Groq", '{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}', None, None, None),
    ("Groq, more than a minute's tokens", "413 Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7312, please reduce your message size and try again.", 6_000, None, None),
    ("OpenAI, more than a minute's tokens", "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.", 30_000, None, None),
    ("OpenAI, too many messages", "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2049 instead.", None, None, None),
    ("OpenAI, too many items", "Invalid 'input': array too long. Expected an array with maximum length 2048, but got an array with length 2049 instead.", None, None, None),
    ("OpenRouter", 'This endpoint\'s maximum context length is 131072 tokens. However, you requested about 140000 tokens (130000 of text input, 10000 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.', 131_072, 130_000, 10_000),
    ("OpenRouter tools", "This endpoint's maximum context length is 131072 tokens. However, you requested about 141000 tokens (130000 of text input, 1000 of tool input, 10000 in the output).", 131_072, 131_000, 10_000),
    ("OpenRouter, limit alone", "maximum context length is 32768 tokens", 32_768, None, None),
    ("Poolside", "prompt exceeds the maximum allowed input length of 131,072 tokens", 131_072, None, None),
    ("Together", "Input (140000 tokens) is longer than the model's context length (131072 tokens).", 131_072, 140_000, None),
    ("SGLang", "The input (40000 tokens) is longer than the model's context length (32768 tokens).", 32_768, 40_000, None),
    ("Copilot", '{"error":{"message":"prompt token count of 135201 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}', 128_000, 135_201, None),
    ("Copilot, limit alone", "Your prompt exceeds the limit of 128000", 128_000, None, None),
    ("llama.cpp", '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9541,"n_ctx":8192}}', 8_192, 9_541, None),
    ("llama.cpp sizes", "request (8212 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192, 8_212, None),
    ("llama.cpp short", "400 request (8212) exceeds context (8192)", 8_192, 8_212, None),
    ("LM Studio", "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input", None, None, None),
    ("LM Studio sizes", "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.", 4_096, 9_000, None),
    ("MiniMax", "invalid params, context window exceeds limit (2013)", None, None, None),
    ("Kimi", "Invalid request: Your request exceeded model token limit: 262144 (requested: 273412)", 262_144, 273_412, None),
    ("Kimi, limit alone", "Your request exceeded model token limit: 131072", 131_072, None, None),
    ("Mistral", '{"object":"error","message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt"}', 131_072, 140_000, None),
    ("DS4", "prompt has 130,000 tokens, but the configured context size is 100,000 tokens", 100_000, 130_000, None),
    ("z.ai", "Provider finished with reason: model_context_window_exceeded", None, None, None),
    ("Ollama", "prompt too long; exceeded max context length by 4321 tokens", None, None, None),
    ("DashScope", "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024, None, None),
    ("Cerebras 400", "400 status code (no body)", None, None, None),
    ("Cerebras 413", "413 (no body)", None, None, None),
    ("vLLM", "This model's maximum context length is 32768 tokens. However, you requested 4096 output tokens and your prompt contains at least 28673 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens.", 32_768, 28_673, 4_096),
    ("vLLM max_tokens", "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 7000 input tokens (4096 > 8192 - 7000).", 8_192, 7_000, 4_096),
    ("vLLM decoder", "The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.", 32_768, 40_000, None),
    ("TGI", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 7000 `inputs` tokens and 2000 `max_new_tokens`", 8_193, 7_000, 2_000),
    ("Fireworks", "The prompt is too long: 140000, model maximum context length: 131071", 131_071, 140_000, None),
    ("Cohere", "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.", 4_081, 4_292, None),
    ("GitHub Models", '{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}', 8_000, None, None),
    ("generic code", '{"error":{"code":"context_length_exceeded"}}', None, None, None),
    ("generic words", "Context length exceeded", None, None, None),
    ("generic context_too_large", '{"error":{"type":"context_too_large","message":"reduce your input"}}', None, None, None),
    ("generic context_overflow", "context_overflow: the conversation does not fit", None, None, None),
    ("generic tokens", "Error: too many tokens in the request", None, None, None),
    ("generic limit", "Token limit exceeded", None, None, None),
    ("coop", "request exceeds context", None, None, None),
    ("gencode", "prompt_too_long", None, None, None),
    ("thousands", "prompt is too long: 213,462 tokens > 200,000 maximum", 200_000, 213_462, None),
    ("a nginx page", "<html><head><title>413 Request Entity Too Large</title></head></html>", None, None, None),
]  # fmt: skip

OTHERS = [
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "Throttling error: Too many tokens, please wait before trying again.",
    "429 Too many tokens per minute",
    "429 Too Many Requests",
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29500, Requested 1200.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.",
    "Invalid 'messages[21].tool_calls': array too long. Expected an array with maximum length 128, but got an array with length 131 instead.",
    '{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization\'s rate limit of 40,000 input tokens per minute."}}',
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    "Service unavailable: too many tokens in flight",
    "503 Service Unavailable",
    "messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "image exceeds the limit of 5242880 bytes",
    "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
    "A maximum of 100 PDF pages may be provided.",
    "The file is too large: 52428800 bytes exceeds the limit of 20971520 bytes",
    "Request payload size exceeds the limit: 20971520 bytes.",
    "The uploaded document is too long to process",
    "max_tokens is too large: 32768. This model supports at most 16384 completion tokens, whereas you provided 32768.",
    "max_tokens: 65536 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
    "You exceeded your current quota, please check your plan and billing details.",
    "Your credit balance is too low to access the API.",
    "401 invalid x-api-key",
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01",
    "400 status code: invalid JSON",
    "Connection reset by peer",
    "Internal server error",
    "",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "limit", "asked", "reply"), [row[1:] for row in OVERFLOWS], ids=[row[0] for row in OVERFLOWS]
)
def test_an_overflow_is_recognised_with_its_sizes(text, limit, asked, reply):
    assert overflow(text) == Overflow(limit=limit, asked=asked, max_tokens=reply)
    assert overflow(text.upper()) == overflow(text)
    assert overflow("Error from the provider: " + text) == overflow(text) or "(no body)" in text


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_are_not_overflows(text):
    assert overflow(text) is None
    assert overflow(text.upper()) is None


def test_a_bare_status_without_a_body_is_an_overflow():
    assert overflow("", 400) == Overflow()
    assert overflow("  ", 413) == Overflow()
    assert overflow("", 500) is None
    assert overflow("429 (no body)") is None


@pytest.mark.parametrize("status", [401, 403, 429, 503, 529])
def test_some_statuses_are_never_overflows(status):
    assert overflow("too many tokens", status) is None


def test_a_request_that_no_minute_has_room_for_is_an_overflow_with_any_status():
    text = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389."
    assert overflow(text, 429) == Overflow(limit=30_000)


@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
def test_local_servers_use_any_status(status):
    assert overflow("request (8212) exceeds context (8192)", status) == Overflow(8192, 8212)


@given(st.text(max_size=300), st.one_of(st.none(), st.integers(100, 599)))
def test_any_text_is_read_without_an_error(text, status):
    found = overflow(text, status)
    assert found is None or isinstance(found, Overflow)


WINDOW = Window(context=100_000, output=8_192)


@pytest.mark.parametrize(
    ("usage", "stop", "found"),
    [
        (Usage(input=100_001, output=20), "end", Overflow(100_000, 100_001)),
        (
            Usage(input=1, cache_read=60_000, cache_write=40_000, output=20),
            "tools",
            Overflow(100_000, 100_001),
        ),
        (Usage(input=100_000, output=20), "end", None),
        (Usage(input=99_000, output=0), "length", Overflow(100_000, 99_000)),
        (Usage(input=9_000, cache_read=90_000), "length", Overflow(100_000, 99_000)),
        (Usage(input=98_999, output=0), "length", None),
        (Usage(input=99_500, output=3), "length", None),
        (Usage(input=99_500, output=0), "end", None),
        (Usage(input=150_000), "error", None),
        (Usage(input=150_000), "aborted", None),
        (Usage(), "length", None),
        (None, "end", None),
    ],
)
def test_the_silent_forms(usage, stop, found):
    assert silent(usage, stop, WINDOW) == found


@pytest.mark.parametrize(
    ("limit", "asked", "max_tokens", "fits"),
    [
        (200_000, 188_240, 21_333, 11_760),
        (200_000, 198_976, 8_192, 1_024),
        (200_000, 198_977, 8_192, None),
        (200_000, 210_000, 8_192, None),
        (200_000, 100_000, 8_192, None),
        (None, 100_000, 8_192, None),
        (200_000, None, 8_192, None),
        (200_000, 199_000, None, None),
    ],
)
def test_a_smaller_reserve_that_fits(limit, asked, max_tokens, fits):
    assert fits_with(limit, asked, max_tokens) == fits


def test_the_text_of_a_provider_leads_to_the_reserve_that_fits():
    found = overflow(
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"
    )
    assert found is not None
    assert fits_with(found.limit, found.asked, found.max_tokens) == 11_760


def test_a_reply_cut_short_by_the_window():
    assert cut_short(Usage(input=95_000, output=4_000), "length", 8_192)
    assert not cut_short(Usage(input=95_000, output=8_192), "length", 8_192)
    assert not cut_short(Usage(input=95_000, output=4_000), "end", 8_192)
    assert not cut_short(Usage(input=95_000, output=0), "length", 8_192)
    assert not cut_short(None, "length", 8_192)


def test_a_call_cut_off_inside_its_arguments():
    cut = ToolCall("c1", "write", '{"path": "a.py", "content": "def f')
    assert cut_call(Message("assistant", (Text("I write."), cut), stop="length"))
    assert not cut_call(Message("assistant", (cut,), stop="tools"))
    assert not cut_call(Message("assistant", (ToolCall("c1", "write", {"path": "a.py"}),), stop="length"))
    assert not cut_call(Message("assistant", (cut, Text("more")), stop="length"))
    assert not cut_call(Message("assistant", (), stop="length"))
