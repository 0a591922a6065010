"""
Short texts
===========

Classify short texts, and draw the probability of each class.
"""

import pandas as pd

from sklearn_attention import TransformerClassifier

delivery = ["where is my order", "still no parcel", "it is late", "when does it ship"]
praise = ["great lamp, thank you", "lovely shoes", "works very well", "so happy with it"]
texts, labels = (delivery + praise) * 5, (["delivery"] * 4 + ["praise"] * 4) * 5
model = TransformerClassifier(random_state=0).fit(texts, labels)
new = ["where is the lamp", "thank you, it works"]
shares = pd.DataFrame(model.predict_proba(new), new, model.classes_)
print(shares.round(2))
shares.plot.barh(stacked=True, xlabel="probability").figure.tight_layout()
