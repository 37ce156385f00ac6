"""Small rows in the published schemas, written for these tests."""

from itertools import count, pairwise

NUMBERS = count()


def musique_row(hops=2, name=None, answer="Lake Vostok", aliases=("Vostok lake",)):
    """A question whose gold paragraphs have the indices 3, 5, 7, …."""
    support = [3 + 2 * hop for hop in range(hops)]
    return {
        "id": name or f"{hops}hop__{next(NUMBERS)}",
        "paragraphs": [
            {
                "idx": index,
                "title": f"Title {index}",
                "paragraph_text": f"Paragraph {index} speaks of something.",
                "is_supporting": index in support,
            }
            for index in range(20)
        ],
        "question": "Which lake lies under the station that the expedition reached?",
        "question_decomposition": [
            {"id": hop, "question": f"hop {hop}", "answer": f"answer {hop}", "paragraph_support_idx": index}
            for hop, index in enumerate(support)
        ],
        "answer": answer,
        "answer_aliases": list(aliases),
        "answerable": True,
    }


def eureqa_row(number=0):
    masks = ["Person A", "Film B", "City C", "River D", "Country E", "Ocean F"]
    entities = ["Ada_Example", "The_Long_Film", "Sampleton", "River_Test!", f"Land_{number}", "Atlantic_Ocean"]
    sentences = [f"{one} is linked to {other}." for one, other in pairwise(masks)]
    return {"question": sentences, "entity_masks": masks, "entities": entities, "idx": number}


def toolrl_row(gold, index=0):
    return {
        "data_source": "rlla",
        "prompt": [
            {"role": "system", "content": "You have tools: weather(city, days), play(song)."},
            {"role": "user", "content": "What will the weather be?"},
        ],
        "reward_model": {"ground_truth": gold, "style": "rule"},
        "extra_info": {"index": index},
    }
