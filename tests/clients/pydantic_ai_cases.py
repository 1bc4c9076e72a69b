# SPDX-License-Identifier: Apache-2.0
"""Agents of Pydantic AI: their loops call tools until the model gives an answer of a type, which is a tool too."""

from importlib.metadata import version
from typing import Literal

from checks import LONG, URL, case, run_cases
from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Report(BaseModel):
    city: Literal["Bonn", "Ulm"]
    mood: Literal["good", "bad"]
    days: int = Field(ge=1, le=7)


def agent_of(kind, asked):
    model = kind(LONG, provider=OpenAIProvider(base_url=URL + "/v1", api_key="none"))
    agent = Agent(model, output_type=Report, retries=0, model_settings={
        "temperature": 2, "max_tokens": 300, "parallel_tool_calls": False})

    @agent.tool_plain
    def get_weather(city: Literal["Bonn", "Ulm"]) -> str:
        """The weather of a city."""
        asked.append(city)
        return "Rain"

    return agent


def loop(kind):
    asked = []
    reports = [agent_of(kind, asked).run_sync("How is the weather?").output for _ in range(8)]
    assert all(isinstance(report, Report) for report in reports)
    assert asked, "no agent called the tool"


@case
def agents_over_chats():
    loop(OpenAIChatModel)


@case
def agents_over_responses():
    loop(OpenAIResponsesModel)


run_cases(f"pydantic-ai {version('pydantic-ai-slim')} (Python)")
