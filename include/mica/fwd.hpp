// SPDX-License-Identifier: Apache-2.0
//
// Names without definitions, for headers that only mention mica's types. It costs nothing to include.
#pragma once

#include <cstdint>

namespace mica {

class Error;
enum class ErrorCode : std::uint8_t;
template <class... Ts>
struct TypeList;
template <class T>
class MatrixView;

template <class List>
struct WithWeights;
template <class E>
struct WithKvElement;
template <class S>
struct WithKv;
template <class E>
struct WithEviction;
template <class List>
struct WithBlocks;
template <class A>
struct WithAllocator;
template <class P>
struct WithPager;
template <class K>
struct WithKernels;
template <class X>
struct WithExecutor;
template <class O>
struct WithObserver;
template <class Family, class Policies>
class BasicTransformer;
class AnyModel;

namespace arch {
template <class Families>
struct AnyOf;
struct Config;
struct Gemma;
struct Gemma2;
struct Gemma3;
struct Gemma3n;
struct Gemma4;
struct GptOss;
struct Granite;
struct Llama;
struct Llama4;
struct Mistral3;
struct Phi3;
struct Qwen2;
struct Qwen2Moe;
struct Qwen3;
struct Qwen35;
struct Qwen35Moe;
struct Qwen3Moe;
struct Qwen3Next;
}  // namespace arch

namespace budget {
class Ledger;
struct Accounts;
}  // namespace budget

namespace exec {
class Inline;
class Team;
}  // namespace exec

namespace format {
struct F32;
struct F16;
struct BF16;
struct F64;
struct I8;
struct I16;
struct I32;
struct I64;
struct IQ1_M;
struct IQ1_S;
struct IQ2_S;
struct IQ2_XS;
struct IQ2_XXS;
struct IQ3_S;
struct IQ3_XXS;
struct IQ4_NL;
struct IQ4_XS;
struct MXFP4;
struct NF4;
struct NVFP4;
struct Q1_0;
struct Q2_0;
struct Q2_K;
struct Q3_K;
struct Q4_0;
struct Q4_1;
struct Q4_K;
struct Q5_0;
struct Q5_1;
struct Q5_K;
struct Q6_K;
struct Q8_0;
struct TQ1_0;
struct TQ2_0;
}  // namespace format

namespace gguf {
class Document;
class DocumentRef;
class Metadata;
struct TensorInfo;
}  // namespace gguf

namespace kernel {
struct Highway;
struct Scalar;
struct Eigen;
}  // namespace kernel

namespace model {
struct NoObserver;
}  // namespace model

namespace plan {
struct Plan;
}  // namespace plan

namespace text {
class AnyTokenizer;
class Bpe;
class ChatFormat;
class Spm;
class Unigram;
class Vocabulary;
class WordPiece;
}  // namespace text

}  // namespace mica
